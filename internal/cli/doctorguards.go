package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"rnix/internal/sandbox"
	"rnix/internal/trust"
	"rnix/types"
)

// sandboxCheck is what doctor --json says of the sandbox besides the text.
type sandboxCheck struct {
	By       string        `json:"by"`           // bwrap or landlock, as commands are confined in this directory; off, or empty: nothing starts
	Level    string        `json:"level"`        // as configured
	Net      string        `json:"net"`          // as configured
	Bwrap    sandbox.Proof `json:"bwrap"`        // whether bubblewrap was proved, by what, or why not
	Landlock sandbox.Proof `json:"landlock"`     // the same of Landlock
	ABI      int           `json:"landlock_abi"` // the version of Landlock that the kernel offers; 0 = none
	Gaps     []string      `json:"gaps"`         // what is not enforced of what confines commands in this directory
}

// checkSandbox says whether commands can be confined here. more is nil where that could not be found out.
func checkSandbox(ctx context.Context, a *app) (c check, more *sandboxCheck) {
	place, err := sandboxPlace(a, a.host.Dir, "")
	if err != nil {
		return check{"sandbox", warned, errorText(err), ""}, nil
	}
	return guard(sandboxHost(ctx, a, place), configuredSandbox(a), place)
}

// guard says how a host confines commands with these settings at a place.
func guard(h sandbox.Host, set sandbox.Settings, place sandbox.Place) (c check, more *sandboxCheck) {
	c = check{"sandbox", fine, tried(h), ""}
	more = &sandboxCheck{Level: string(set.Level), Net: string(set.Net), Bwrap: h.Bwrap, Landlock: h.Landlock, ABI: h.ABI, Gaps: []string{}}
	plan, err := sandbox.MakePlan(set.Policy(place, false), h, sandbox.Disk{})
	switch {
	case set.Off():
		c.Status, more.By, c.Mend = warned, string(sandbox.LevelOff), "switch it on, in config.yaml: sandbox: {level: auto}"
		c.Detail = "the configuration switches it off, so commands of agents may do all that you may; " + c.Detail
	case h.Best() == sandbox.RungNone:
		c.Status, c.Detail, c.Mend = warned, "commands cannot be confined: "+c.Detail, h.Bwrap.Fix
		if h.Landlock.Fix != "" {
			c.Mend = strings.TrimPrefix(c.Mend+"\nor: "+h.Landlock.Fix, "\nor: ")
		}
		if set.Optional {
			more.By = string(sandbox.LevelOff)
		}
	case err != nil:
		c.Status, c.Detail, c.Mend = warned, "commands cannot be confined here as configured: "+errorText(err)+"; "+c.Detail, h.Bwrap.Fix
	default:
		more.By, more.Gaps = string(plan.Rung), append(more.Gaps, plan.Gaps...)
		if c.Mend = h.Bwrap.Fix; h.Bwrap.Proved {
			c.Mend = "try it: rnix sandbox try -- COMMAND; what is not enforced: rnix sandbox explain"
		}
		if !h.Landlock.Proved {
			c.Status, c.Mend = warned, strings.TrimPrefix(c.Mend+"\n"+h.Landlock.Fix, "\n")
			c.Detail += "; git that Rnix runs itself is not confined, only told by its settings to run nothing that a repository names: that needs Landlock"
		}
	}
	return c, more
}

// tried says what the test of each mechanism has shown.
func tried(h sandbox.Host) string {
	var by, not []string
	for _, r := range []struct {
		name  string
		proof sandbox.Proof
	}{{"bubblewrap", h.Bwrap}, {"Landlock", h.Landlock}} {
		if r.proof.Proved {
			by = append(by, r.name)
		} else {
			not = append(not, "not by "+r.name+": "+r.proof.Reason)
		}
	}
	detail := strings.Join(not, "; ")
	if len(by) > 0 {
		detail = "a test was refused what is outside, other programs, sockets and capabilities, by " + strings.Join(append([]string{strings.Join(by, " and by ")}, not...), "; ")
	}
	if h.ABI > 0 {
		detail += "; Landlock has version " + number(h.ABI)
	}
	return detail
}

// checkTrust says how many projects are trusted, and how the one of this directory stands.
func checkTrust(a *app, configDir string) check {
	c := check{Check: "trust", Status: fine}
	book := trust.In(configDir)
	entries, problems := book.All()
	changed := 0
	for _, e := range entries {
		if state, _, err := book.Status(e.Dir); err != nil || state != trust.Trusted {
			changed++
		}
	}
	switch n := len(entries) - changed; {
	case len(entries) == 0:
		c.Detail = "no project is trusted"
	case n == 1:
		c.Detail = "1 project is trusted"
	default:
		c.Detail = fmt.Sprintf("%d projects are trusted", n)
	}
	if changed > 0 {
		c.Detail += fmt.Sprintf(", and %d not any more, since a file has changed", changed)
	}
	here := trustHere(a, book)
	c.Status, c.Mend, c.Detail = here.Status, here.Mend, c.Detail+"; "+here.Detail
	if err := errors.Join(problems...); err != nil {
		c.Status, c.Detail = warned, c.Detail+"; "+errorText(problems[0])
	}
	return c
}

// trustHere is checkTrust for the project of this directory.
func trustHere(a *app, book trust.Book) check {
	dir, err := (&trustOptions{app: a}).project(nil)
	if err != nil { // it is the home, or gone
		return check{Status: fine, Detail: "this directory is no project that could be trusted"}
	}
	state, changes, err := book.Status(dir)
	if err != nil && types.CodeOf(err) != types.ErrStorage {
		return check{Status: warned, Detail: "this one cannot be: " + errorText(err)}
	}
	switch state {
	case trust.Trusted:
		return check{Status: fine, Detail: "this one is"}
	case trust.Changed:
		return check{Status: warned, Detail: "this one has changed since (" + trust.Names(changes) + "), and its MCP servers and agents do not count", Mend: "look at what is different: rnix trust"}
	}
	files, err := trust.Look(dir)
	switch {
	case err != nil:
		return check{Status: warned, Detail: "this one cannot be: " + errorText(err)}
	case len(files) == 0:
		return check{Status: fine, Detail: "this one has no file that could start a program"}
	}
	return check{Status: absent, Detail: "this one is not: " + plural(len(files), "file", "files") + " of it can start programs or widen what agents may do", Mend: "look at them, and trust them if they are right: rnix trust"}
}
