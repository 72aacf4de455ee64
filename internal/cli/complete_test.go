package cli

import (
	"regexp"
	"strings"
	"testing"
)

// The first help shows a few commands; what a shell completes, and rnix help --all, have every one of them.
func TestShellsCompleteEachCommandThatHelpAllLists(t *testing.T) {
	f := newFake(t)
	offered, all := f.run("__complete", ""), f.run("help", "--all").out
	topics, n := f.run("__complete", "help", ""), 0
	a, err := newApp(Host{Args: []string{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range newRoot(a).Commands() {
		if c.Hidden {
			continue
		}
		if !regexp.MustCompile(`(?m)^  (rnix )?` + regexp.QuoteMeta(c.Name()) + ` `).MatchString(all) {
			t.Errorf("%s is not in rnix help --all", c.Name())
		}
		if !strings.Contains("\n"+topics.out, "\n"+c.Name()+"\t") {
			t.Errorf("rnix help does not complete %s", c.Name())
		}
		if !c.Runnable() && !c.HasSubCommands() {
			continue // a topic
		}
		if n++; !strings.Contains("\n"+offered.out, "\n"+c.Name()+"\t") {
			t.Errorf("shells are not offered %s", c.Name())
		}
	}
	if n < 60 {
		t.Errorf("%d commands", n)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} { // all of them ask the program
		if r := f.run("completion", shell); !strings.Contains(r.out, "__complete") {
			t.Errorf("%s: %.200s", shell, r.out)
		}
	}
}
