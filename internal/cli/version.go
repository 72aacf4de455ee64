package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func versionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "show the version of this program and of the daemon",
		Long:        "Version shows the version of this program, and that of the daemon if it is another one.",
		Example:     examples(`rnix version`, `rnix version --json`),
		Annotations: exits("0 2"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versionInfo{Version: a.host.Version, Protocol: ipc.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Commit: commit()}
			// A daemon that does not answer does not keep this program from saying what it is.
			if client, err := a.find(c.Context()); err == nil && client != nil {
				if p, err := ipc.Call(c.Context(), client, ipc.Ping, ipc.Empty{}); err == nil {
					v.Daemon = p.Version
				}
			}
			showVersion(a.out, a.host.Name, &v)
			return nil
		},
	}
}

// versionInfo is the answer of version --json.
type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Protocol string `json:"protocol"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Daemon   string `json:"daemon,omitempty"` // the version of the one that runs
}

func showVersion(out *output, name string, v *versionInfo) {
	if out.json() {
		out.object(v)
		return
	}
	line := name + " " + v.Version
	if v.Commit != "" {
		line += " (" + v.Commit + ")"
	}
	out.print(line + " " + v.Go + " " + v.Platform + "\n")
	switch v.Daemon {
	case "", v.Version:
	default:
		out.talk("the daemon that runs is of version %s; replace it with: %s daemon stop", oneLine(v.Daemon), name)
	}
}

// commit returns the revision that the program was built from, if the build knows it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			rev = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	if rev == "" {
		return ""
	}
	return rev + dirty
}
