package cli

import (
	"strings"

	"rnix/agent"
)

// deviceList is the value of --allow or --deny: device paths, with commas between them, or a rule about a tool, which has a pattern. The
// flag may be repeated.
type deviceList struct {
	paths *[]string
	deny  bool
	rules *[]string
}

// String returns the flag's value.
func (l deviceList) String() string {
	if l.paths == nil {
		return ""
	}
	return strings.Join(*l.paths, ",")
}

// Type names the kind of value in the help.
func (l deviceList) Type() string { return "strings" }

// Set adds devices. An empty list allows nothing; to deny nothing is a slip, such as an unset variable.
func (l deviceList) Set(text string) error {
	if l.rules != nil && strings.ContainsAny(text, " *") {
		return addRule(l.rules, text)
	}
	if *l.paths == nil {
		*l.paths = []string{}
	}
	if text == "" && !l.deny {
		return nil
	}
	for path := range strings.SplitSeq(text, ",") {
		if err := agent.CheckDevice(path, l.deny, agent.Devices()); err != nil {
			return err
		}
		*l.paths = append(*l.paths, path)
	}
	return nil
}
