package cli

import (
	"context"

	"github.com/spf13/cobra"

	"rnix/internal/mcpserve"
)

func mcpServeCmd(a *app) *cobra.Command {
	var session string
	c := &cobra.Command{
		Use:   "serve",
		Short: "be an MCP server",
		Long: `With --session, Serve gives an agent's command line the tools that the kernel has for it: FILE says where
the kernel is and holds the credential. It is made for each session, and only its user can read it.`,
		Example:     examples(`rnix mcp serve --session FILE`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if session == "" {
				return usagef("rnix mcp serve --session FILE", "there is no session")
			}
			return a.serveSession(c.Context(), session)
		},
	}
	c.Flags().StringVar(&session, "session", "", "the `FILE` of a session, for the command line that runs in it")
	return c
}

// serveSession gives the tools of a session to the command line at the other end of our standard input and output.
func (a *app) serveSession(ctx context.Context, file string) error {
	s, err := mcpserve.OpenSession(ctx, file)
	if err != nil {
		return err
	}
	defer s.Close()
	err = mcpserve.Stdio(ctx, s, a.host.Version, a.host.In, a.host.Out)
	if gone(err) {
		return unreachable(err)
	}
	return err
}
