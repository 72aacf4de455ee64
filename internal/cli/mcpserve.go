package cli

import (
	"context"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/config"
	"rnix/internal/mcpserve"
	"rnix/ipc"
	"rnix/runtime/statehome"
)

// mcpServeOptions are the flags of mcp serve.
type mcpServeOptions struct {
	app       *app
	session   string
	http      string
	tokenFile string
	client    string
	readOnly  bool
	answers   bool
}

func mcpServeCmd(a *app) *cobra.Command {
	o := &mcpServeOptions{app: a}
	c := &cobra.Command{
		Use:   "serve",
		Short: "be an MCP server: let an MCP client start, watch and steer agents",
		Long: `Serve is an MCP server, for Claude Code, Codex, Cursor or any other client. Its tools are spawn, ps, wait,
log, result, diff, cost, asks, steer, send, pause, resume and kill, which do what the commands do;
--read-only leaves out those that change something. The log, the steps and the result of each process are
resources.

A client starts it, and talks to it over standard input and output: --print-config shows what to put into the
client's configuration. With --http it serves any number of clients on this machine, which have to send a
token: it is shown at the start, or stands in the file of --token-file, which is made if it is not there.
On a Unix socket (--http unix:PATH) only your own processes can connect, and a token is asked for only with
--token-file. Either way commands of agents are refused, also with the token: they do not have your rights.

asks shows the client which calls of agents wait for your answer. It cannot answer them: it is often an AI
itself, and would decide what you wanted to decide. --answers adds the tool answer, if you want that.

With --session, Serve gives an agent's command line the tools that the kernel has for it: FILE says where
the kernel is and holds the credential. It is made for each session, and only its user can read it.`,
		Example: examples(`rnix mcp serve --print-config claude > .mcp.json`, `rnix mcp serve --print-config codex >> ~/.codex/config.toml`,
			`rnix mcp serve --http 127.0.0.1:8137 --token-file ~/.rnix/mcp-token`,
			`rnix mcp serve --http unix:$XDG_RUNTIME_DIR/rnix-mcp.sock`, `rnix mcp serve --session FILE`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        noArgs,
		RunE:        func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.Flags().Changed) },
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&o.readOnly, "read-only", false, "only the tools that change nothing")
	f.BoolVar(&o.answers, "answers", false, "also the tool that answers, in your place, what agents ask you")
	f.StringVar(&o.http, "http", "", "serve over HTTP on this `ADDRESS` of this machine: 127.0.0.1:8137, port 0 = any; or unix:PATH")
	f.StringVar(&o.tokenFile, "token-file", "", "the `FILE` that has the token for HTTP")
	f.StringVar(&o.client, "print-config", "", "show what to put into the configuration of a `CLIENT`: "+strings.Join(mcpserve.Clients(), ", "))
	f.StringVar(&o.session, "session", "", "the `FILE` of a session, for the command line that runs in it")
	_ = c.RegisterFlagCompletionFunc("print-config", cobra.FixedCompletions(mcpserve.Clients(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func (o *mcpServeOptions) run(ctx context.Context, changed func(string) bool) error {
	for _, name := range []string{"read-only", "answers", "http", "token-file", "print-config"} {
		if o.session != "" && changed(name) {
			return usagef("leave one of them out", "--%s does not go with --session: the kernel chooses its tools", name)
		}
	}
	if o.answers && o.readOnly {
		return usagef("leave one of them out", "--answers does not go with --read-only: an answer lets calls be made")
	}
	switch {
	case changed("session"):
		return o.serveSession(ctx)
	case changed("print-config"):
		return o.printConfig()
	case changed("http"):
		return o.serveHTTP(ctx)
	case changed("token-file"):
		return usagef("add --http 127.0.0.1:8137", "--token-file is for HTTP; over standard input and output there is no token")
	}
	if terminal(o.app.host.In) {
		o.app.out.talk("waiting for an MCP client on standard input; what to set up in one is shown by: rnix mcp serve --print-config claude")
	}
	p := o.processes()
	defer p.Close()
	return mcpserve.Stdio(ctx, p, o.app.host.Version, o.app.host.In, o.app.host.Out)
}

// serveSession gives the tools of a session to the command line at the other end of our standard input and output.
func (o *mcpServeOptions) serveSession(ctx context.Context) error {
	s, err := mcpserve.OpenSession(ctx, o.session)
	if err != nil {
		return err
	}
	defer s.Close()
	err = mcpserve.Stdio(ctx, s, o.app.host.Version, o.app.host.In, o.app.host.Out)
	if gone(err) {
		return unreachable(err)
	}
	return err
}

// serveHTTP serves until the program is ended by a signal.
func (o *mcpServeOptions) serveHTTP(ctx context.Context) error {
	a := o.app
	socket, unix := strings.CutPrefix(o.http, mcpserve.UnixPrefix)
	token := ""
	if !unix {
		token = mcpserve.NewToken()
	}
	if o.tokenFile != "" {
		var err error
		if token, err = mcpserve.TokenFile(o.tokenFile); err != nil {
			return err
		}
	}
	l, err := mcpserve.Listen(ctx, o.http)
	if err != nil {
		return err
	}
	shown := struct {
		URL       string `json:"url"`
		Socket    string `json:"socket,omitempty"`
		Token     string `json:"token,omitempty"`
		TokenFile string `json:"token_file,omitempty"`
	}{URL: "http://" + l.Addr().String() + mcpserve.Path, TokenFile: o.tokenFile}
	if unix {
		shown.URL, shown.Socket = "http://localhost"+mcpserve.Path, socket
	}
	if o.tokenFile == "" {
		shown.Token = token
	}
	if a.out.json() {
		a.out.object(shown)
	} else {
		a.out.print("url    " + shown.URL + "\n")
		if shown.Token != "" {
			a.out.print("token  " + shown.Token + "\n")
		}
		if shown.Socket != "" {
			a.out.print("socket " + shown.Socket + "\n")
		}
		if token != "" {
			a.out.talk("clients send the token as: Authorization: Bearer TOKEN; commands of agents are refused; Ctrl+C ends the server, and no agent")
		} else {
			a.out.talk("your own processes may connect, commands of agents may not; Ctrl+C ends the server, and no agent")
		}
	}
	if a.out.broken != nil {
		_ = l.Close()
		return nil // nobody can know the address; the reason is reported at the end
	}
	p := o.processes()
	defer p.Close()
	return a.withInterrupts(func(sigs <-chan os.Signal) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- mcpserve.HTTP(ctx, p, a.host.Version, l, token, p.Same) }() // ends with ctx, below
		select {
		case err := <-ended:
			return err
		case sig := <-sigs:
			cancel()
			<-ended
			return leave(signalExit(sig))
		}
	})
}

// processes offers the processes of the daemon that the other commands talk to.
func (o *mcpServeOptions) processes() *mcpserve.Processes {
	a := o.app
	return &mcpserve.Processes{Dir: a.host.Dir, Parent: a.inherited(), Environ: a.host.Environ, ReadOnly: o.readOnly, Answers: o.answers,
		Connect: func(ctx context.Context) (*ipc.Client, error) {
			p, err := a.places()
			if err != nil {
				return nil, err
			}
			return reach(ctx, a, p, nil, nil) // without the dashboard of web.port: nobody would see its link
		}}
}

// printConfig shows what to put into a client's configuration.
func (o *mcpServeOptions) printConfig() error {
	program, err := os.Executable()
	if err != nil {
		return usagef("", "this program cannot be found: %w", err)
	}
	s := mcpserve.Setup{Program: program, Args: []string{"mcp", "serve"}, Pass: o.passed()}
	if o.readOnly {
		s.Args = append(s.Args, "--read-only")
	}
	if o.answers {
		s.Args = append(s.Args, "--answers")
	}
	if strings.HasPrefix(o.http, mcpserve.UnixPrefix) {
		return usagef("give an address such as 127.0.0.1:8137, or leave --http out", "--http %q: the clients for which a configuration is printed connect to no Unix socket", o.http)
	}
	if o.http != "" {
		if _, port, err := net.SplitHostPort(o.http); err != nil || port == "0" {
			return usagef("", "--http %q: a configuration needs an address with a port, such as 127.0.0.1:8137", o.http)
		}
		s.URL = "http://" + o.http + mcpserve.Path
	}
	text, err := mcpserve.Config(o.client, s)
	if err != nil {
		return usagef("", "invalid --print-config %q: want one of %s", o.client, strings.Join(mcpserve.Clients(), ", "))
	}
	o.app.out.print(text)
	switch {
	case o.http != "":
		o.app.out.talk("the client takes the token from its variable %s", mcpserve.TokenEnv)
	case o.client == "claude":
		o.app.out.talk("put it into .mcp.json of a project, or give the file to: claude --mcp-config")
	case o.client == "codex":
		o.app.out.talk("add it to ~/.codex/config.toml")
	}
	return nil
}

// passed are the names of the variables that a program which is started by a client needs: where the daemon is,
// and the keys of the model providers.
func (o *mcpServeOptions) passed() []string {
	a := o.app
	src := config.Sources{Home: a.getenv("HOME")}
	if dir, err := statehome.ConfigDir(a.env); err == nil {
		src.UserDir = dir
	}
	want := []string{"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "OPENAI_BASE_URL", "OPENAI_MODEL"}
	for _, p := range config.LoadProviders(src).List {
		want = append(want, p.APIKeyEnv)
	}
	own := config.Load(src)
	want = append(want, own.Search.Keyed.APIKeyEnv)
	var names []string
	for _, kv := range a.host.Environ {
		name, value, _ := strings.Cut(kv, "=")
		if value != "" && (slices.Contains(want, name) || strings.HasPrefix(name, "RNIX_")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
