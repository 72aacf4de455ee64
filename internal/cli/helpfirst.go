package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// daily are the commands of a first look, by what they are for.
var daily = []struct {
	title string
	names []string
}{
	{"Start and steer agents:", []string{"run", "chat", "wait", "resume", "kill"}},
	{"See what they do, and answer them:", []string{"ps", "log", "diff", "asks", "allow", "web"}},
	{"Set up:", []string{"doctor", "providers", "init"}},
}

// firstHelp shows what someone needs who sees this program for the first time.
func firstHelp(to io.Writer, root *cobra.Command) {
	fmt.Fprintf(to, "%s\n\nUsage:\n  rnix \"INTENT\" [flags]    an agent works on it here; all flags: rnix help run\n"+
		"  rnix                     talk to an agent, in a terminal\n  rnix COMMAND [flags]\n", root.Long)
	for _, g := range daily {
		fmt.Fprintf(to, "\n%s\n", g.title)
		for _, name := range g.names {
			if i := slices.IndexFunc(root.Commands(), func(c *cobra.Command) bool { return c.Name() == name }); i >= 0 {
				fmt.Fprintf(to, "  %-10s %s\n", name, root.Commands()[i].Short)
			}
		}
	}
	fmt.Fprintf(to, "\nExamples:\n%s\n", root.Example)
	fmt.Fprint(to, `
More:
  rnix help --all          every command and flag
  rnix help COMMAND        one command with examples, such as: rnix help run
  rnix help exit-codes     the exit codes of all commands; the variables: rnix help environment
  rnix help config.yaml    limits and defaults; also: rnix help providers.yaml and rnix help replay-files
`)
}
