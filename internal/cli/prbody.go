package cli

import (
	"fmt"
	"strings"

	"rnix/debug"
	"rnix/internal/price"
	"rnix/ipc"
)

// The bounds of what a pull request says of its run, in characters and in files.
const (
	prTextMax  = 8000
	prFilesMax = 100
)

// prBody is the description of a pull request: what was to be done, what the agent says of it, which files are
// changed, and what it cost. p = nil is a process of which nothing more is known.
func prBody(w *ipc.Worktree, p *ipc.ProcDetail) string {
	var parts []string
	part := func(text string) {
		if text = strings.TrimSpace(debug.Sanitize(text)); text != "" {
			parts = append(parts, cutText(text, prTextMax))
		}
	}
	if p != nil {
		part(p.Intent)
		part(p.Result)
	} else {
		part(w.Intent)
	}
	if len(w.Files) > 0 {
		var b strings.Builder
		fmt.Fprintf(&b, "%s changed:\n\n", plural(len(w.Files), "file", "files"))
		for i := range w.Files {
			f := &w.Files[i]
			if i == prFilesMax {
				fmt.Fprintf(&b, "- and %d more\n", len(w.Files)-i)
				break
			}
			lines := ""
			if !f.Binary && f.Added+f.Deleted > 0 {
				lines = fmt.Sprintf(" (+%d -%d)", f.Added, f.Deleted)
			}
			fmt.Fprintf(&b, "- `%s` %s%s\n", oneLine(f.Path), changeWord(f.Status), lines)
		}
		parts = append(parts, strings.TrimSpace(b.String()))
	}
	if p != nil {
		made := []string{"made by an agent", plural(p.Step, "step", "steps"), tokens(p.TokensUsed, p.Estimated) + " tokens"}
		if p.Agent != "" {
			made[0] = "made by the agent " + oneLine(p.Agent)
		}
		if m := modelName(p.Provider, p.Model); m != "" {
			made[0] += " on " + m
		}
		if cost := price.Spent(p.CostUSD, p.TokensUsed, p.Unpriced); cost != "-" && cost != "?" {
			made = append(made, cost)
		}
		parts = append(parts, "("+strings.Join(made, ", ")+")")
	}
	return strings.Join(parts, "\n\n")
}

// changeWord says what a status of a file means.
func changeWord(status string) string {
	switch status {
	case "A":
		return "added"
	case "D":
		return "deleted"
	case "T":
		return "of another type"
	}
	return "changed"
}

// cutText returns a text of at most so many characters, with its line breaks.
func cutText(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return strings.TrimSpace(string(r[:most])) + "\n[cut]"
	}
	return s
}
