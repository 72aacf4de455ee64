package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/yamlfile"
)

// showHelp completes what the library shows: the exit codes, and topics without an empty line behind; and has it fit the terminal.
// Of a command that there is not it says so instead.
func showHelp(usual func(*cobra.Command, []string), a *app) func(*cobra.Command, []string) {
	return func(c *cobra.Command, args []string) {
		if a.unknown = unknownHelp(c); a.unknown != nil {
			return
		}
		to := c.OutOrStdout()
		var text bytes.Buffer
		c.SetOut(&text)
		defer func() {
			c.SetOut(to)
			fmt.Fprint(to, fit(text.String(), a.out.out.width))
		}()
		if !c.HasParent() && !a.allHelp {
			firstHelp(&text, c)
			return
		}
		if !c.Runnable() && !c.HasSubCommands() {
			fmt.Fprintln(&text, strings.TrimRight(c.Long, "\n"))
			return
		}
		usual(c, args)
		if codes := c.Annotations[exitsKey]; codes != "" {
			fmt.Fprint(&text, "\nExit codes (all: rnix help exit-codes):\n", codesHelp(codes))
		}
	}
}

// unknownHelp refuses the help of a word that is no command: that of the command above it would pass for it.
func unknownHelp(c *cobra.Command) error {
	words := c.Flags().Args()
	switch {
	case len(words) == 0 || !c.HasSubCommands():
		return nil
	case c.HasParent():
		return unknownCommand(c, words[0])
	}
	return bareIntent(words, func(word string) []string { return similar(c, word) })
}

// helpCmd shows the help of a command or a topic.
func helpCmd(a *app, root *cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:                   "help [COMMAND]",
		Short:                 "show the help of a command or of a topic",
		Long:                  "Help shows what a first look needs, with --all every command and flag; or the help of a command, or of one\nof the topics exit-codes, environment, config.yaml, providers.yaml and replay-files.",
		Example:               examples(`rnix help --all`, `rnix help run`, `rnix help daemon stop`, `rnix help exit-codes`, `rnix help providers.yaml`),
		Annotations:           exits("0 2"),
		GroupID:               "set",
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			if c, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, k := range c.Commands() {
					if !k.Hidden {
						out = append(out, cobra.CompletionWithDesc(k.Name(), k.Short))
					}
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c := root
			for _, word := range args {
				next, rest, err := c.Find([]string{word})
				if err != nil || len(rest) > 0 || next == c {
					return unknownTopic(c, word)
				}
				c = next
			}
			c.InitDefaultHelpFlag()
			c.InitDefaultVersionFlag()
			return c.Help()
		},
	}
	c.Flags().BoolVarP(&a.allHelp, "all", "a", false, "every command and flag")
	return c
}

// unknownTopic says what may have been meant by a word behind help.
func unknownTopic(c *cobra.Command, word string) error {
	mend := "see: rnix help --all"
	if near := similar(c, word); len(near) > 0 {
		mend = "did you mean: rnix help" + strings.TrimPrefix(c.CommandPath(), c.Root().Name()) + " " + near[0]
	} else if !c.HasParent() {
		var names []string
		for _, t := range topics() {
			names = append(names, t.names)
		}
		if near := yamlfile.Nearest(word, names); near != "" {
			mend = "did you mean: rnix help " + near
		}
	}
	return usagef(mend, "there is no help about %q", word)
}

// completionCmd writes the scripts with which shells complete commands.
func completionCmd(a *app) *cobra.Command {
	shells := []cobra.Completion{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "write what a shell needs to complete commands: bash, zsh, fish or powershell",
		Long: `Completion writes a script that teaches a shell to complete the commands, flags, processes, agents
and providers of this program.

  bash        source <(rnix completion bash), in ~/.bashrc
  zsh         rnix completion zsh > "${fpath[1]}/_rnix"
  fish        rnix completion fish > ~/.config/fish/completions/rnix.fish
  powershell  rnix completion powershell | Out-String | Invoke-Expression, in $PROFILE`,
		Example:               examples(`rnix completion bash`, `source <(rnix completion bash)`),
		Annotations:           exits("0 2"),
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.FixedCompletions(shells, cobra.ShellCompDirectiveNoFileComp),
		Args:                  argsOf(1, 1, "a shell: bash, zsh, fish or powershell"),
		RunE: func(c *cobra.Command, args []string) error {
			root, w := c.Root(), outWriter{a.out}
			switch args[0] {
			case "bash":
				a.out.print(bashFallbacks)
				return root.GenBashCompletionV2(w, true)
			case "zsh":
				return root.GenZshCompletion(w)
			case "fish":
				return root.GenFishCompletion(w, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return usagef("", "no completion is known for %q: use bash, zsh, fish or powershell", args[0])
		},
	}
}

// bashFallbacks stand in for what the script uses of the package bash-completion, where that is missing.
const bashFallbacks = `declare -F _get_comp_words_by_ref >/dev/null || _get_comp_words_by_ref() {
    words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD
    cur=${words[cword]}; prev=${words[cword-1]}
}
declare -F _filedir >/dev/null || _filedir() {
    local kind=-f line
    [[ $1 == -d ]] && kind=-d
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen $kind -- "$cur")
}

`

// outWriter is standard output for those who need a writer.
type outWriter struct{ out *output }

func (w outWriter) Write(p []byte) (int, error) { w.out.print(string(p)); return len(p), w.out.broken }
