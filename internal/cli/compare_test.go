package cli

import (
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// twoCompared are two processes with other intents and models.
func twoCompared() []compared {
	made := func(n byte, name, intent, model string) compared {
		p := ipc.Proc{}
		p.PID, p.UUID = types.PID(n), id(n)
		p.Name, p.Intent, p.State, p.Provider, p.Model = name, intent, "dead", "vendor", model
		p.Step, p.TokensUsed, p.ElapsedMs = 12, 123456, 64000
		p.Exit = &types.ExitStatus{Reason: "completed"}
		return compared{Proc: &p, Files: []ipc.FileChange{{Path: "a", Added: 1234, Deleted: 17}}}
	}
	return []compared{made(1, "first", "Fix issue 12", "large"), made(2, "second", "Fix issue 13", "small")}
}

func comparedText(t *testing.T, list []compared, width int) string {
	t.Helper()
	var b, talk strings.Builder
	if err := showCompared(&output{out: stream{w: &b, width: width}, err: stream{w: &talk}}, list, time.Now()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestComparedProcessesKeepTheirNamesIn80Columns(t *testing.T) {
	got := comparedText(t, twoCompared(), 80)
	for _, want := range []string{" NAME ", " first ", " second ", "vendor/large", "vendor/small"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if n := cells(strings.TrimRight(line, "\n")); n > 80 || strings.Contains(line, "      1m04s") {
			t.Errorf("%d cells, or a gap before the last column: %q", n, line)
		}
	}
}

func TestIntentsThatDifferAreSaidOfEachProcess(t *testing.T) {
	list := twoCompared()
	if got := comparedText(t, list, 80); !strings.HasPrefix(got, "PID 1: Fix issue 12\nPID 2: Fix issue 13\nPID ") {
		t.Error(got)
	}
	list[1].Intent = list[0].Intent
	if got := comparedText(t, list, 80); !strings.HasPrefix(got, "Fix issue 12\nPID ") {
		t.Error(got)
	}
}
