package cli

import (
	"github.com/spf13/cobra"

	"rnix/internal/permit"
)

// ruleList is the value of --ask: a rule about tools. The flag may be repeated.
type ruleList struct{ rules *[]string }

// String returns the flag's value.
func (l ruleList) String() string { return "" }

// Type names the kind of value in the help.
func (l ruleList) Type() string { return "RULE" }

// Set adds a rule.
func (l ruleList) Set(text string) error { return addRule(l.rules, text) }

func addRule(to *[]string, text string) error {
	if _, err := permit.Parse(text); err != nil {
		return permit.Reason(err)
	}
	*to = append(*to, text)
	return nil
}

// askFlags adds the flags that say about which calls a person is asked.
func askFlags(c *cobra.Command, rules *permit.Rules, asks *string) {
	c.Flags().Var(ruleList{&rules.Ask}, "ask", "ask you before such calls, e.g. shell, 'shell git push *', /dev/fs; may be repeated")
	c.Flags().StringVar(asks, "asks", "", "what is asked waits, or is denied: wait, deny (default wait; deny without -d and terminal)")
	_ = c.RegisterFlagCompletionFunc("asks", cobra.FixedCompletions([]string{"wait", "deny"}, cobra.ShellCompDirectiveNoFileComp))
}

// asksOf reads --asks. Without it, what is asked is denied where no person is to be seen: in the foreground, without a terminal, and not
// inside an agent, for which other people look.
func asksOf(a *app, asks string, foreground bool) (string, error) {
	switch {
	case asks == "" && foreground && !a.out.err.terminal && a.inherited() == "":
		return "deny", nil
	case asks == "", asks == "wait", asks == "deny":
		return asks, nil
	}
	return "", usagef("", "invalid --asks %q: want wait or deny", asks)
}
