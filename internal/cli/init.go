package cli

import (
	"github.com/spf13/cobra"

	"rnix/internal/config"
)

func initCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "write a starter .rnix into this directory",
		Long: `Init writes a starter .rnix into the current directory: config.yaml, mcp.yaml, and an agent called
"project" with its instructions. Files that exist are kept as they are.`,
		Example:     examples(`rnix init`, `rnix init --json`),
		Annotations: exits("0 1 2 11"),
		Args:        noArgs,
		RunE:        func(*cobra.Command, []string) error { return initProject(a.out, a.host.Dir) },
	}
}

// initProject writes the starter files below dir. It needs no daemon.
func initProject(out *output, dir string) error {
	made, kept, err := config.Init(dir, config.Template())
	for _, list := range []struct {
		names []string
		what  string
	}{{made, "wrote"}, {kept, "kept"}} {
		for _, name := range list.names {
			if out.json() {
				out.object(struct {
					Path   string `json:"path"`
					Action string `json:"action"` // wrote, kept
				}{name, list.what})
			} else if !out.quiet {
				out.print(list.what + "  " + name + "\n")
			}
		}
	}
	if err != nil {
		return err
	}
	if len(made) > 0 {
		out.talk("next: look at .rnix/agents/project/instructions.md, then: rnix --agent project \"Report on this project\"")
		out.talk("which model will be used, and what is missing, says: rnix doctor")
	} else {
		out.talk("everything was there already; nothing was changed")
	}
	return nil
}
