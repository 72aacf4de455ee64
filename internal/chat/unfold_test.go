package chat

import (
	"fmt"
	"strings"
	"testing"

	"rnix/internal/soak"
	"rnix/ipc"
)

// runs is a call of a command with what it has printed.
func (d *desk) runs(command, printed string) {
	d.m.script.open = append(d.m.script.open, openCall{id: command, name: "shell", input: fmt.Sprintf(`{"command":%q}`, command)})
	showResult(d.m, &ipc.ConversationMessage{Role: "tool", ToolCallID: command, Content: printed})
	d.m.out.lines = nil
}

// unfolds presses Ctrl+O and returns what it prints, and what it says.
func (d *desk) unfolds() (printed, said string) {
	d.put = nil
	d.key("ctrl+o")
	return d.printed(), d.m.note
}

func TestCtrlOGoesBackOneCallEachTime(t *testing.T) {
	d := begun(t)
	if _, said := d.unfolds(); said != "there is no output to unfold" {
		t.Errorf("without a call it says %q", said)
	}
	d.runs("seq 1 9", strings.Repeat("first\n", 9))
	d.runs("make", "second\n[exit code 0, 3 s]\n")
	d.runs("true", "")
	d.runs("ls", "third")
	for _, want := range []string{"─ shell ls  (last)\nthird", "─ shell make  (3rd last)\nsecond", "─ shell seq 1 9  (4th last)\nfirst\nfirst"} {
		if printed, _ := d.unfolds(); !strings.Contains(printed, want) {
			t.Errorf("it prints %q, want %q", printed, want)
		}
	}
	if printed, said := d.unfolds(); printed != "" || !strings.Contains(said, "no earlier output is kept") {
		t.Errorf("behind the first one: %q, %q", printed, said)
	}
	if printed, said := d.unfolds(); !strings.Contains(printed, "ls  (last)") || !strings.Contains(said, "Ctrl+O again") {
		t.Errorf("and again: %q, %q", printed, said)
	}
	d.runs("date", "fourth")
	if printed, _ := d.unfolds(); !strings.Contains(printed, "date  (last)") {
		t.Errorf("after another call: %q", printed)
	}
	showOwn(d.m, "who", "me", "")
	d.m.out.lines = nil
	if printed, _ := d.unfolds(); !strings.Contains(printed, "! who  (last)\nme") {
		t.Errorf("a command of the person: %q", printed)
	}
	d.does(beginAnew(d.m, "another"))
	if _, said := d.unfolds(); said != "there is no output to unfold" {
		t.Errorf("in another conversation it says %q", said)
	}
}

func TestWhatIsKeptToUnfoldIsBounded(t *testing.T) {
	soak.Turn(t)
	d := begun(t)
	for i := range 3 * keptResults {
		d.runs(fmt.Sprintf("run %d", i), "x")
	}
	if n := len(d.m.results.all); n != keptResults {
		t.Errorf("%d results are kept", n)
	}
	for range keptResults {
		d.unfolds()
	}
	if printed := d.printed(); !strings.Contains(printed, "run 40  (20th last)") {
		t.Errorf("the earliest one: %s", printed)
	}
	large := strings.Repeat(strings.Repeat("y", 5<<10)+"\n", unfolded)
	for i := range 3 {
		d.runs(fmt.Sprintf("large %d", i), large)
	}
	u := &d.m.results
	bytes := 0
	for i := range u.all {
		bytes += len(u.all[i].text)
	}
	if bytes != u.bytes || bytes > keptBytes || len(u.all) != 2 {
		t.Errorf("%d results of %d bytes are kept, and %d are counted", len(u.all), bytes, u.bytes)
	}
	d.runs("long", strings.Repeat(strings.Repeat("z", 300)+"\n", 2*unfolded))
	if printed, _ := d.unfolds(); strings.Count(printed, "z") != unfolded*300 || !strings.HasSuffix(printed, "… 400 lines more; see: rnix steps 7") {
		t.Errorf("%d bytes, which end %q", len(printed), printed[len(printed)-80:])
	}
}

// What is folded is unfolded: the steps of a plan, and the difference that a call has made.
func TestAPlanAndADifferenceAreUnfolded(t *testing.T) {
	var steps, lines []string
	for i := range 30 {
		steps, lines = append(steps, fmt.Sprintf(`"step %d"`, i)), append(lines, fmt.Sprintf("line %d", i))
	}
	for name, c := range map[string]struct{ input, folded, unfolded string }{
		"plan":       {`{"steps":[` + strings.Join(steps, ",") + `]}`, "□ step 15\n  │ … 14 lines more (Ctrl+O)", "step 15\nstep 16\n"},
		"write_file": {`{"path":"a","content":"` + strings.Join(lines, `\n`) + `"}`, "+line 15\n  │ … 14 lines more (Ctrl+O)", "+line 15\n+line 16\n"},
	} {
		d := begun(t)
		d.m.script.open = []openCall{{id: "1", name: name, input: c.input}}
		showResult(d.m, &ipc.ConversationMessage{Role: "tool", ToolCallID: "1", Content: "done"})
		if text := strings.Join(d.m.out.lines, "\n"); !strings.Contains(text, c.folded) {
			t.Errorf("%s is folded to:\n%s", name, text)
		}
		if printed, _ := d.unfolds(); !strings.Contains(printed, c.unfolded) {
			t.Errorf("%s is unfolded to:\n%s", name, printed)
		}
	}
}

func TestNumbersFromTheEnd(t *testing.T) {
	for n, want := range map[int]string{1: "", 2: "2nd ", 3: "3rd ", 4: "4th ", 11: "11th ", 12: "12th ", 21: "21st ", 22: "22nd ", 111: "111th "} {
		if got := ordinal(n); got != want {
			t.Errorf("%d is %q", n, got)
		}
	}
}
