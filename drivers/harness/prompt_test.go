package harness

import (
	"strings"
	"testing"

	"rnix/drivers/llm"
)

func offering(names ...string) (specs []llm.ToolSpec) {
	for _, n := range names {
		specs = append(specs, llm.ToolSpec{Name: n})
	}
	return specs
}

func TestALineThatNamesAToolThatIsNotThereIsLeftOut(t *testing.T) {
	text := "# One\n\n- `shell` runs.\n- plain\n\n# Two\n\n- `spawn` and `plan`\n\n# Three\n\n- use `spawn` of `path:line`"
	got := withTools(text, func(tool string) (string, bool) { return "x-" + tool, tool == "spawn" })
	if want := "# One\n\n- plain\n\n# Three\n\n- use `x-spawn` of `path:line`"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBuiltInInstructionsAreThoseOfTheirToolsAndAUsersStay(t *testing.T) {
	const mine = "Call `complete` when the `tests` pass."
	for _, text := range builtIn() {
		got := instructions(sheet{}, mine+"\n\n"+text+"\n\nYou are in /w.", offering("complete", "spawn", "read_file"), false)
		if strings.Contains(got, "`read_file`") || strings.Contains(got, "`shell`") || strings.Count(got, "`complete`") != 1 || !strings.Contains(got, mine) ||
			!strings.Contains(got, "You are in /w.") || !strings.Contains(got, "it has the name "+Server+"-NAME") {
			t.Errorf("%s", got)
		}
		if got = instructions(sheet{}, text, offering("complete", "spawn", "read_file"), true); strings.Contains(got, "read_file") || strings.Contains(got, "NAME") {
			t.Errorf("beside its own tools: %s", got)
		}
	}
	if len(builtIn()) != 3 {
		t.Errorf("%d agents are built in", len(builtIn()))
	}
	if got := instructions(sheet{}, "Use `make`.", offering("complete"), false); got != "Use `make`." {
		t.Errorf("%q", got)
	}
}
