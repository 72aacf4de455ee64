package cli

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/types"
)

// ControlPlane says how a control plane is to be served.
type ControlPlane struct {
	Listen    string        // an address, or the path of a socket
	DataDir   string        // absolute
	TokenFile string        // absolute
	TTL       time.Duration // of leases; 0 = the default
	// Ready is called once it answers.
	Ready func(ControlPlaneReady)
}

// ControlPlaneReady says where a control plane is. The field names are those of --json.
type ControlPlaneReady struct {
	URL       string `json:"url"`
	DataDir   string `json:"data"`
	TokenFile string `json:"tokenFile"`
	NewToken  bool   `json:"newToken"` // the file was made
	Local     bool   `json:"local"`    // nobody on another machine reaches it
}

func serveCmd(a *app) *cobra.Command {
	var o ControlPlane
	var controlPlane bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "serve the control-plane API: session leases and activity",
		Long: `Serve --control-plane serves the session API: who owns a session, what its owner tells, and messages to it.
Daemons on several machines that share one have at most one owner for each session at a time. It serves until it
is stopped, with Ctrl+C or SIGTERM; what it has answered with success is on the disk.

A client needs the token in the token file, which is made if it is missing. Without --listen it cannot be
reached from another machine. It speaks HTTP: put something that speaks TLS before it if the network
is not yours alone.`,
		Example: examples(`rnix serve --control-plane`, `rnix serve --control-plane --listen 127.0.0.1:0 --json`,
			`rnix serve --control-plane --listen ./control.sock --data ./control`,
			`curl -H "Authorization: Bearer $(cat TOKEN_FILE)" http://127.0.0.1:7717/api/sessions`),
		Annotations: exits("0 1 2 11"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !controlPlane {
				return usagef("for the session API: rnix serve --control-plane", "say what is to be served")
			}
			if a.host.ControlPlane == nil {
				return types.Errorf(types.ErrUnavailable, "Serve", "", "this program has no control plane in it")
			}
			if o.TTL == 0 && c.Flags().Changed("ttl") {
				return usagef("give it a value from 1s to 24h", "--ttl %v is no time for a lease", o.TTL)
			}
			if err := o.settle(a); err != nil {
				return err
			}
			o.Ready = func(r ControlPlaneReady) { controlPlaneReady(a.out, r) }
			if err := a.host.ControlPlane(c.Context(), o); err != nil {
				return err
			}
			a.out.talk("the control plane has stopped")
			return nil
		},
	}
	f := c.Flags()
	f.BoolVar(&controlPlane, "control-plane", false, "serve the session API")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:7717", "where: HOST:PORT (port 0 is any that is free), or the path of a socket")
	f.StringVar(&o.DataDir, "data", "", "the directory in which it keeps everything (default: control-plane in the data directory)")
	f.StringVar(&o.TokenFile, "token-file", "", "the file with its token (default: token in --data)")
	f.DurationVar(&o.TTL, "ttl", 0, "how long a lease is good without a refresh (default 1m)")
	_ = c.MarkFlagDirname("data")
	_ = c.MarkFlagFilename("token-file")
	return c
}

// settle fills in what was not said, and makes paths absolute.
func (o *ControlPlane) settle(a *app) error {
	if o.TTL != 0 && (o.TTL < time.Second || o.TTL > 24*time.Hour) {
		return usagef("give it a value from 1s to 24h", "--ttl %v is no time for a lease", o.TTL)
	}
	absolute := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(a.host.Dir, path)
	}
	if o.DataDir = absolute(o.DataDir); o.DataDir == "" {
		p, err := a.places()
		if err != nil {
			return err
		}
		o.DataDir = filepath.Join(p.DataDir, "control-plane")
	}
	if o.TokenFile = absolute(o.TokenFile); o.TokenFile == "" {
		o.TokenFile = filepath.Join(o.DataDir, "token")
	}
	if path, unix := strings.CutPrefix(o.Listen, "unix:"); unix || strings.Contains(o.Listen, "/") {
		o.Listen = "unix:" + absolute(path)
	}
	return nil
}

func controlPlaneReady(out *output, r ControlPlaneReady) {
	if out.json() {
		out.object(&r)
		return
	}
	how := "the file was there"
	if r.NewToken {
		how = "a new one"
	}
	out.print("control plane  " + oneLine(r.URL) + "\n" +
		"data           " + oneLine(r.DataDir) + "\n" +
		"token          in " + oneLine(r.TokenFile) + " (" + how + ")\n")
	if !r.Local {
		out.warn("other machines can reach it, and it speaks HTTP: anyone who can read that network can read the token; put something that speaks TLS before it")
	}
	out.talk("it serves until it is stopped: Ctrl+C")
}
