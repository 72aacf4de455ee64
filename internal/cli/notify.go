package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
	"rnix/types"
)

func notifyCmd(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:        "notify",
		SuggestFor: []string{"notifications", "notice", "alert"},
		Short:      "be told of what happens while you do not look",
		Long: `You are told when an agent asks you about a call, and when what you have started has failed, is suspended
or is done, in the ways that your config.yaml says:

  notify:
    on: [ask, failed, suspended, done]   # default: all of them
    desktop: true                        # by notify-send
    command: [/opt/told, --loud]         # gets JSON on standard input, and RNIX_NOTICE_TITLE, _TEXT, _KIND
    post: https://example.com/hook       # gets the same JSON
    token_env: HOOK_TOKEN                # a variable of the daemon with a bearer token for it
    every: 5s                            # the least time between two; what comes meanwhile is told together

What cannot be brought is tried again three times, within a minute; then the daemon's log says so. Changes
of the file count at once.`,
		Example: examples(`rnix notify test`),
	}
	return family(c, notifyTestCmd(a))
}

func notifyTestCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "test",
		Short:       "tell yourself something, by each way that is configured",
		Long:        `Test tells you something once by each way that your config.yaml has, and says of each what came of it.`,
		Example:     examples(`rnix notify test`, `rnix notify test --json | jq .ways`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        argsOf(0, 0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			r, err := ipc.Call(c.Context(), client, ipc.NotifyTest, ipc.Empty{})
			if err != nil {
				return err
			}
			return showNotifyTest(a.out, &r)
		},
	}
}

func showNotifyTest(out *output, r *ipc.NotifyTestResponse) error {
	failed := 0
	for _, w := range r.Ways {
		if w.Error != "" {
			failed++
		}
	}
	switch {
	case out.json():
		out.object(r)
	case len(r.Ways) == 0:
		out.talk("no way is configured: write notify: {desktop: true} into your config.yaml, or see: rnix notify --help")
	default:
		for _, w := range r.Ways {
			line := w.Way + ": told"
			if w.Error != "" {
				line = w.Way + ": failed: " + oneLine(w.Error)
			}
			out.print(line + "\n")
		}
		out.talk("you are told of: %s", strings.Join(r.On, ", "))
	}
	if failed > 0 && out.json() { // the ways say why
		return leave(exitCode(types.Errorf(types.ErrUnavailable, "Notify", "", "a way failed")))
	}
	if failed > 0 {
		return types.Errorf(types.ErrUnavailable, "Notify", "", "%d of %s failed", failed, plural(len(r.Ways), "way", "ways"))
	}
	return nil
}
