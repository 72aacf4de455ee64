package cli

import (
	"bufio"
	"cmp"
	"context"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"rnix/internal/proc"
	"rnix/internal/web"
	"rnix/ipc"
	"rnix/types"
)

// webOptions are the flags of web.
type webOptions struct {
	app    *app
	port   int
	chosen bool // the port was said
	noOpen bool
	detach bool
	behind bool // it is the one in the background
}

func webCmd(a *app) *cobra.Command {
	o := &webOptions{app: a}
	c := &cobra.Command{
		Use:   "web",
		Short: "show all agents in a browser: what they do, cost and said, and steer them",
		Long: `Web serves the dashboard to browsers on this machine, until Ctrl+C. It shows a link that lets one browser in,
once, and opens it if there is a desktop. Enter in its terminal shows another link. Ending it ends no agent.

With --detach it runs in the background, also when the terminal is closed and the daemon is started again,
and its address stays; if one runs there already, its address is printed. A browser that was let in lets others
in on the page System. With "web: {port: 7718}" in your config.yaml that is done for you whenever the daemon is
started by a command that can show you the link on a terminal: not with -q or --json, nor by a conversation.

It listens on 127.0.0.1 alone. To see it from another machine, forward the port: ssh -L 7718:127.0.0.1:7718 HOST
What a page starts has the environment of this command, keys of model providers included.`,
		Example:     examples(`rnix web`, `rnix web --no-open`, `rnix web --detach`, `rnix web --port 0 --json`),
		Annotations: exits("0 1 2 11 130"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.chosen = c.Flags().Changed("port"); !o.chosen {
				o.port = cmp.Or(wantedPort(a), o.port)
			}
			return o.run(c.Context())
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.IntVar(&o.port, "port", web.DefaultPort, "where to listen; 0 = any that is free, as is the case when the default (or web.port of config.yaml) is taken")
	f.BoolVarP(&o.detach, "detach", "d", false, "run in the background: print the link and the PID, and leave it to serve")
	f.BoolVar(&o.behind, "background", false, "be the program that --detach starts")
	_ = f.MarkHidden("background")
	f.BoolVar(&o.noOpen, "no-open", false, "only show the link")
	return c
}

// webReady says where the dashboard is. The field names are those of --json.
type webReady struct {
	Link    string `json:"link,omitempty"` // lets one browser in, once; empty for one that has run before
	Address string `json:"address"`        // for browsers that were let in
	Port    int    `json:"port"`
	PID     int    `json:"pid"` // of this program
}

func (o *webOptions) run(ctx context.Context) error {
	a := o.app
	if o.port < 0 || o.port > 65535 {
		return usagef("use one from 1024 to 65535, or 0 for any that is free", "--port %d is no port", o.port)
	}
	a.noDashboard = true // one that comes with the daemon would take its port, and its link
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	if o.detach {
		return o.background(ctx, client.Socket())
	}
	if err := proc.HideMemory(); err != nil { // the person's keys are in it
		a.out.warn(err.Error())
	}
	l, err := o.listen(ctx, client.Socket())
	if err != nil {
		return err
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	s := web.New(web.Options{Socket: client.Socket(), DataDir: p.DataDir, Env: a.host.Environ, Dir: a.host.Dir, Doctor: examiner(a, client)}, l)
	ready := webReady{s.Link(), s.Address(), l.Addr().(*net.TCPAddr).Port, os.Getpid()}
	defer webNote{ready, client.Socket(), p.DataDir, o.behind}.note()()
	if a.out.json() {
		a.out.object(&ready)
	} else {
		a.out.print("dashboard  " + ready.Link + "\n")
		a.out.talk("the link lets one browser in, once%s; Ctrl+C ends the dashboard, and no agent", map[bool]string{true: "; Enter shows another"}[o.listens()])
	}
	if a.out.broken != nil {
		_ = l.Close()
		return nil // nobody can know the link; the reason is reported at the end
	}
	return a.withInterrupts(func(sigs <-chan os.Signal) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx) }() // ends with ctx, below
		if o.opens() {
			done, err := s.Open(a.host.Environ)
			defer done()
			if err != nil {
				a.out.warn("the browser cannot be opened, open the link yourself: " + errorText(err))
			}
		}
		enter := o.enters()
		for {
			select {
			case err := <-ended:
				return err
			case <-enter:
				a.out.print("dashboard  " + s.Link() + "\n")
			case sig := <-sigs:
				cancel()
				<-ended
				return leave(signalExit(sig))
			}
		}
	})
}

// examiner returns what makes the checks of doctor for the page, with the daemon that there is: none is started for them.
func examiner(a *app, client *ipc.Client) func(context.Context) []web.Finding {
	b := *a // the command goes on with its own
	b.client = client
	return func(ctx context.Context) []web.Finding {
		var out []web.Finding
		checks, confined := b.examine(ctx, false)
		for _, c := range checks {
			found := web.Finding{Check: c.Check, Status: string(c.Status), Detail: c.Detail, Mend: c.Mend}
			if c.Check == "sandbox" && confined != nil {
				found.Sandbox = confined
			}
			out = append(out, found)
		}
		return out
	}
}

// listen listens on the port that was asked for, or on any if the default is taken.
func (o *webOptions) listen(ctx context.Context, socket string) (net.Listener, error) {
	l, err := web.Listen(ctx, o.port)
	if types.CodeOf(err) != types.ErrConflict {
		return l, err
	}
	who := dashboardAt(socket, o.port)
	switch {
	case o.chosen && who == "":
		return nil, err
	case o.chosen:
		return nil, types.Errorf(types.ErrConflict, "Listen", "port "+strconv.Itoa(o.port), "%s, is there; use --port 0 for one that is free", who)
	}
	o.app.out.talk("port %d is taken by %s; taking one that is free", o.port, cmp.Or(who, "another program"))
	return web.Listen(ctx, 0)
}

// listens reports whether a person can press Enter.
func (o *webOptions) listens() bool {
	return o.app.host.Shell == nil && !o.app.out.json() && terminal(o.app.host.In)
}

// opens reports whether there is somebody before a desktop.
func (o *webOptions) opens() bool {
	return !o.noOpen && o.listens() && (o.app.getenv("DISPLAY") != "" || o.app.getenv("WAYLAND_DISPLAY") != "")
}

// enters says each time when a person presses Enter.
func (o *webOptions) enters() <-chan struct{} {
	if !o.listens() {
		return nil
	}
	// In the background a read is an error then, and does not stop the program.
	signal.Ignore(syscall.SIGTTIN)
	enter := make(chan struct{})
	// Owned by the program: nothing but its end ends the reading of a terminal.
	go func() {
		lines := bufio.NewScanner(o.app.host.In)
		for lines.Scan() {
			enter <- struct{}{}
		}
	}()
	return enter
}
