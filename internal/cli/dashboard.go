package cli

import (
	"github.com/spf13/cobra"

	"rnix/internal/tui"
)

func dashboardCmd(app *app) *cobra.Command {
	a := screenCommand{app}
	var all bool
	c := &cobra.Command{
		Use:        "dashboard [PROCESS]",
		SuggestFor: []string{"ui", "tui", "inspect", "show"},
		Short:      "see and steer processes on a full screen: the tree, and what there is to one of them",
		Long: `Dashboard shows the tree of processes at the left and, at the right, what is known of the one that is chosen, in
panes with numbers. It opens on a process that has ended as on one that runs.

These are the keys; ? shows those of the place where you are. What an agent has written is shown without
anything that a terminal would obey. RNIX_ASCII=1 draws without other characters than ASCII, NO_COLOR
without colours. How you leave the view is how you find it the next time.

` + tui.KeyReference(),
		Example:           examples(`rnix dashboard`, `rnix dashboard night`, `rnix dashboard 0191f3a2-7c3e`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(app, true)),
		RunE: func(c *cobra.Command, args []string) error {
			o := tui.Options{All: all}
			if len(args) > 0 {
				o.Target = args[0]
			}
			return a.screen(c.Context(), o)
		},
	}
	c.Flags().BoolVarP(&all, "all", "a", false, "also those that have ended")
	return c
}
