package cli

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// argsOf checks how many arguments a command gets; a negative most is no limit. what says what they
// are, as in "a process: its PID, its UUID or its name".
func argsOf(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		mend := "usage: " + strings.TrimSuffix(c.UseLine(), " [flags]")
		switch {
		case len(args) < least:
			return usagef(mend, "%s needs %s", nameOf(c), what)
		case most == 0 && len(args) > 0:
			return usagef(mend, "%s takes no arguments, and %q is one", nameOf(c), args[0])
		case most > 0 && len(args) > most:
			return usagef(mend, "%s takes at most %s, and %q is too much", nameOf(c), plural(most, "argument", "arguments"), args[most])
		}
		return nil
	}
}

// nameOf is a command without the name of the program, which stands before each error anyway.
func nameOf(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// process is what most commands need.
const process = "a process: its PID, its UUID or the beginning or end of that, or its name"

// noArgs refuses arguments.
func noArgs(c *cobra.Command, args []string) error { return argsOf(0, 0, "")(c, args) }

// family makes a command out of one that only has commands below it: without arguments it shows its
// help, and a name that is none of theirs is an error instead of that help.
func family(c *cobra.Command, members ...*cobra.Command) *cobra.Command {
	c.AddCommand(members...)
	c.DisableFlagsInUseLine = true
	c.Annotations = exits("0 2")
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		return unknownCommand(c, args[0])
	}
	return c
}

// unknownCommand says what was probably meant, or what there is.
func unknownCommand(c *cobra.Command, word string) error {
	mend := "see: " + c.CommandPath() + " --help"
	if near := similar(c, word); len(near) > 0 {
		mend = "did you mean: " + c.CommandPath() + " " + strings.Join(near, ", or "+c.CommandPath()+" ")
	}
	return usagef(mend, "unknown command %q of %s", word, nameOf(c))
}

// similar returns the commands below c that word may have been meant to be. In a short word one letter
// makes another word.
func similar(c *cobra.Command, word string) []string {
	c.SuggestionsMinimumDistance = 2
	if len(word) < 5 {
		c.SuggestionsMinimumDistance = 1
	}
	return c.SuggestionsFor(word)
}

// helpOf says where the help of a command is. A command of the shell alone has it there.
func helpOf(c *cobra.Command) string {
	if c.Hidden {
		return "see: help " + c.Name()
	}
	return "see: " + c.CommandPath() + " --help"
}

// flagError makes an error of the flag parser ours: it names the flag, the value and the mend.
func flagError(c *cobra.Command, err error) error {
	mend := helpOf(c)
	var unknown interface {
		GetSpecifiedName() string
		GetSpecifiedShortnames() string
	}
	var invalid interface{ GetValue() string }
	switch {
	case errors.As(err, &unknown) && strings.HasPrefix(err.Error(), "unknown"):
		if name := nearFlag(c, unknown.GetSpecifiedName()); name != "" {
			mend = "did you mean: --" + name
		}
		switch names := unknown.GetSpecifiedShortnames(); {
		case names == unknown.GetSpecifiedName():
			return usagef(mend, "unknown flag: -%s", names)
		case names != "":
			return usagef(mend, "unknown flag -%s in -%s", unknown.GetSpecifiedName(), names)
		}
		return usagef(mend, "unknown flag: --%s", unknown.GetSpecifiedName())
	case errors.As(err, &invalid):
		_, flag, _ := strings.Cut(err.Error(), `" for "`)
		flag, _, _ = strings.Cut(flag, `" flag: `)
		if cause := errors.Unwrap(err); cause != nil && flag != "" {
			return usagef("", "%s %q: %s", flag, invalid.GetValue(), wanted(cause))
		}
	}
	return usagef(mend, "%w", err)
}

// wanted says what a flag wants, after a value that it could not read.
func wanted(err error) string {
	var number *strconv.NumError
	switch {
	case errors.As(err, &number) && errors.Is(err, strconv.ErrRange):
		return "the number is too large"
	case errors.As(err, &number) && number.Func == "ParseBool":
		return "want true or false"
	case errors.As(err, &number):
		return "want a whole number"
	case strings.HasPrefix(err.Error(), "time: "):
		return "want a time such as 90s, 10m or 1h30m"
	}
	return err.Error()
}

// nearFlag returns the flag of c that name begins or misspells by one letter, or "".
func nearFlag(c *cobra.Command, name string) string {
	var names cobra.Command // cobra compares names of commands: flags become some for that
	for _, usage := range strings.Split(c.Flags().FlagUsages(), "\n") {
		for word := range strings.FieldsSeq(usage) {
			if flag, ok := strings.CutPrefix(word, "--"); ok {
				names.AddCommand(&cobra.Command{Use: flag, Run: func(*cobra.Command, []string) {}})
				break
			}
		}
	}
	near := similar(&names, name)
	slices.Sort(near)
	if len(name) < 2 || len(near) == 0 {
		return ""
	}
	return near[0]
}
