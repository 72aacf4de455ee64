package tui

import (
	"fmt"
	"strings"
)

// openHelp shows the keys of this place, from the one table.
func openHelp(m *Model) {
	text := helpText(m)
	m.help = newLong(m.env.t)
	m.help.set(text)
}

// helpText is the keys of this place, the narrowest place first.
func helpText(m *Model) string {
	var b strings.Builder
	taken := map[string]bool{}
	for _, p := range m.places() {
		section := keySection(m.env.t, m.at(p), taken)
		if section == "" {
			continue
		}
		name := string(p)
		if p == inPane {
			name = "In the pane " + m.pane().title()
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(name + "\n" + section)
	}
	if why := noPrices(m.env.t, m.list.entries); why != "" {
		b.WriteString("\n" + why + "\n")
	}
	return b.String()
}

// keySection is the lines of some bindings. Keys that a narrower place has taken are left out.
func keySection(t *Theme, list []binding, taken map[string]bool) string {
	var b strings.Builder
	for _, k := range list {
		var names []string
		for _, name := range k.keys {
			if !taken[name] {
				taken[name] = true
				names = append(names, keyName(t, name))
			}
		}
		if len(names) > 0 {
			what := strings.Join(names, " ")
			fmt.Fprintf(&b, "  %s%s  %s\n", what, blanks(18-t.cells(what)), k.what)
		}
	}
	return b.String()
}

// KeyReference is the table of keys of all places, as text: what the help of the commands shows.
func KeyReference() string {
	t := &Theme{ASCII: true}
	all := bindings()
	var b strings.Builder
	for _, p := range []place{inList, inTop, inDash, inText, inAsk, inInput, anywhere} {
		var list []binding
		for _, k := range all {
			if k.place == p {
				list = append(list, k)
			}
		}
		fmt.Fprintf(&b, "%s\n%s\n", p, keySection(t, list, map[string]bool{}))
	}
	for _, s := range paneSections(t) {
		fmt.Fprintf(&b, "%s\n%s\n", s.name, keySection(t, s.keys, map[string]bool{}))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// paneKeySection is the keys that a pane has for itself, in one of the things that it shows.
type paneKeySection struct {
	name string
	keys []binding
}

// paneSections are the keys of all panes that have some.
func paneSections(t *Theme) []paneKeySection {
	var out []paneKeySection
	for _, p := range newPanes(&env{t: t}) {
		if keys := p.keys(); len(keys) > 0 {
			out = append(out, paneKeySection{"In the pane " + p.title(), keys})
		}
		if s, ok := p.(*stepsPane); ok {
			s.mode = oneStep
			out = append(out, paneKeySection{"In the pane " + p.title() + ", with a step open", s.keys()})
		}
	}
	return out
}
