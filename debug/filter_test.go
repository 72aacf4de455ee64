package debug

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// all is an event of each kind that a filter tells apart.
var all = map[string]event.Event{
	"llm":       {Kind: event.Syscall, Name: "Write", Path: "/dev/llm/claude", Dur: 3 * time.Second},
	"fs":        {Kind: event.Syscall, Name: "Write", Path: "/dev/fs", Args: `{"path":"src/main.go","op":"read_file"}`, Dur: time.Millisecond},
	"fs bad":    {Kind: event.Syscall, Name: "Open", Path: "/dev/workspace", Err: "no", Code: types.ErrPermission},
	"shell":     {Kind: event.Syscall, Name: "Write", Path: "/dev/shell", Dur: 2 * time.Second},
	"mcp":       {Kind: event.Syscall, Name: "Write", Path: "/mnt/mcp/3-git/status"},
	"other":     {Kind: event.Syscall, Name: "Read", Path: "/dev/shells"},
	"mount":     {Kind: event.Mounted, Path: "/mnt/mcp/3-git", Dur: 2 * time.Second},
	"signal":    {Kind: event.Signalled, Name: "SIGTERM"},
	"pause":     {Kind: event.Resumed, Dur: time.Hour},
	"exit":      {Kind: event.Exited, Exit: &types.ExitStatus{}},
	"exit bad":  {Kind: event.Exited, Exit: &types.ExitStatus{Code: 1}, Dur: time.Hour},
	"budget":    {Kind: event.Exited, Exit: &types.ExitStatus{Code: types.ExitBudget}},
	"wait":      {Kind: event.Waiting, Text: "rate limit"},
	"storage":   {Kind: event.StorageError, Err: "full", Path: "/data/x"},
	"step":      {Kind: event.StepEnded, Dur: 4 * time.Second},
	"think":     {Kind: event.LogLine, Name: "think"},
	"output":    {Kind: event.LogLine, Name: "output"},
	"warning":   {Kind: event.LogLine, Name: "warning"},
	"stalled":   {Kind: event.Stalled, Result: "suspect"},
	"goes on":   {Kind: event.Stalled, Result: "over"},
	"missing":   {Kind: event.Lag},
	"of a node": {Kind: event.NodeChanged, Result: "failed"},
	"leased":    {Kind: event.Leased, Result: "ours", Dur: time.Hour},
	"lost":      {Kind: event.Leased, Result: "lost"},
	"refused":   {Kind: event.Refused, Name: "write", Path: "/etc/x"},
}

// picked are the names of those that a filter picks, but for what is always picked.
func picked(t *testing.T, f *Filter) string {
	t.Helper()
	match, err := f.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name, e := range all {
		if match(&e) && name != "missing" {
			out = append(out, name)
		} else if name == "missing" && !match(&e) {
			t.Errorf("%+v does not tell that events are missing", f)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func TestEveryPartOfAFilterCountsAndTheyHaveToFitTogether(t *testing.T) {
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{Classes: []string{"llm"}}, "llm"},
		{Filter{Classes: []string{"tool"}}, "fs, fs bad, mcp, other, refused, shell"},
		{Filter{Classes: []string{"tool", "!fs"}}, "mcp, other, refused, shell"},
		{Filter{Classes: []string{"fs", "shell", "signal"}}, "fs, fs bad, pause, refused, shell, signal"},
		{Filter{Classes: []string{"mcp"}}, "mcp, mount"},
		{Filter{Classes: []string{"!tool", "!llm", "!log", "!process", "!step", "!storage"}}, "goes on, leased, lost, mount, pause, signal, stalled, wait"},
		{Filter{Classes: []string{"open"}}, "fs bad"},
		{Filter{Classes: []string{"Write", "!llm"}}, "fs, mcp, shell"},
		{Filter{Classes: []string{"process", "wait"}}, "budget, exit, exit bad, goes on, leased, lost, of a node, stalled, wait"},
		{Filter{Failed: true}, "budget, exit bad, fs bad, of a node, refused, storage"},
		{Filter{Failed: true, Classes: []string{"tool"}}, "fs bad, refused"},
		{Filter{Slow: time.Second}, "llm, mount, shell, step"},
		{Filter{Slow: time.Second, Classes: []string{"!llm", "!step"}}, "mount, shell"},
		{Filter{Slow: time.Second, Failed: true}, ""},
		{Filter{Path: "/dev/*"}, "fs, fs bad, other, shell"},
		{Filter{Path: "/dev/**"}, "fs, fs bad, llm, other, shell"},
		{Filter{Path: "/dev/s?ell"}, "shell"},
		{Filter{Path: "*.go"}, "fs"},
		{Filter{Path: "src/[m]*.go"}, "fs"},
		{Filter{Path: "*.go", Classes: []string{"shell"}}, ""},
		{Filter{Path: "/etc/*"}, "refused"},
		{Filter{Path: "/mnt/**", Slow: time.Second}, "mount"},
		{Filter{Log: true}, "budget, exit bad, fs bad, goes on, lost, of a node, output, refused, stalled, storage, think, warning"},
		{Filter{Log: true, Level: LevelWarning}, "budget, exit bad, fs bad, lost, of a node, refused, stalled, storage, warning"},
		{Filter{Log: true, Level: LevelError}, "exit bad, fs bad, of a node, storage"},
		{Filter{Log: true, Level: LevelInfo, Categories: []string{"output", "think"}}, "output"},
	} {
		if got := picked(t, &c.f); got != c.want {
			t.Errorf("%+v picks %s\nwant %s", c.f, got, c.want)
		}
	}
	if match, err := (*Filter)(nil).Matcher(); err != nil || !match(&event.Event{}) {
		t.Error("no filter picks all")
	}
}

func TestAFilterThatCannotBeIsRefused(t *testing.T) {
	for _, f := range []Filter{{Classes: []string{"tols"}}, {Classes: []string{"!"}}, {Classes: []string{""}}, {Slow: -1}, {Path: "["}, {Path: "[]"}, {Path: "[z-a]"},
		{Path: strings.Repeat("*", 1001)}, {Categories: []string{"loud"}}, {Level: "high"}} {
		if _, err := f.Matcher(); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", f, err)
		}
	}
}

func TestEveryKindOfEventHasAClassAndALevel(t *testing.T) {
	for name, e := range all {
		if of := ClassesOf(&e); name != "missing" && (len(of) == 0 || !slices.Contains(Classes(), of[0])) {
			t.Errorf("%s is of %v", name, of)
		}
		if LevelOf(&e).rank() < 0 {
			t.Errorf("%s is %s", name, LevelOf(&e))
		}
	}
	for name, want := range map[string]Level{"think": LevelDebug, "output": LevelInfo, "warning": LevelWarning, "budget": LevelWarning, "exit bad": LevelError, "storage": LevelError,
		"exit": LevelInfo, "stalled": LevelWarning, "goes on": LevelInfo, "missing": LevelWarning} {
		if e := all[name]; LevelOf(&e) != want {
			t.Errorf("%s is %s, want %s", name, LevelOf(&e), want)
		}
	}
}

func TestSummaryCountsByCallAndDevice(t *testing.T) {
	var s Summary
	for _, e := range []event.Event{
		{Kind: event.Syscall, Name: "Write", Path: "/dev/llm/a", Dur: 3 * time.Second}, {Kind: event.Syscall, Name: "Write", Path: "/dev/llm/b/c", Dur: time.Second},
		{Kind: event.Syscall, Name: "Write", Path: "/mnt/mcp/3-git", Dur: 2, Err: "no"}, {Kind: event.Syscall, Name: "Write", Path: "/mnt/mcp/14-git/x", Dur: 4},
		{Kind: event.Syscall, Name: "Read", Path: "/proc/3/status"}, {Kind: event.Syscall, Name: "Send", Dur: -5}, {Kind: event.Exited, Dur: time.Hour},
	} {
		s.Add(&e)
	}
	line := func(r SummaryRow) string { return r.Call + " " + r.Path }
	var got []string
	for _, r := range s.Rows("time") {
		got = append(got, line(r))
	}
	if want := "Write /dev/llm, Write /mnt/mcp/*-git, Read /proc, Send "; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if r := s.Rows("time")[0]; r.Calls != 2 || r.Total != 4*time.Second || r.Mean != 2*time.Second || r.Max != 3*time.Second || r.Share < 0.99 {
		t.Errorf("%+v", r)
	}
	for order, first := range map[string]string{"errors": "Write /mnt/mcp/*-git", "name": "Read /proc", "max": "Write /dev/llm", "mean": "Write /dev/llm", "calls": "Write /dev/llm"} {
		if r := s.Rows(order)[0]; line(r) != first {
			t.Errorf("by %s first: %s", order, line(r))
		}
	}
	var none Summary
	if len(none.Rows("time")) != 0 || !slices.Contains(Orders(), "time") {
		t.Error("nothing gives rows")
	}
}

func TestSummaryTellsWhatIsUnfinished(t *testing.T) {
	var s Summary
	for _, e := range []event.Event{
		{Kind: event.SyscallBegun, PID: 1, Seq: 4, Name: "Wait"}, {Kind: event.SyscallBegun, PID: 1, Seq: 5, Name: "Write", Path: "/dev/shell"},
		{Kind: event.Syscall, PID: 2, Seq: 6, Begin: 4, Name: "Wait", Dur: time.Second}, // of another process
		{Kind: event.Syscall, PID: 1, Seq: 7, Begin: 5, Name: "Write", Path: "/dev/shell", Dur: time.Minute},
		{Kind: event.SyscallBegun, PID: 3, Seq: 5, Name: "Recv"}, // of a later daemon
	} {
		s.Add(&e)
	}
	for _, r := range s.Rows("name") {
		want := map[string][2]int{"Wait": {1, 1}, "Write": {1, 0}, "Recv": {0, 1}}[r.Call]
		if r.Calls != want[0] || r.Unfinished != want[1] {
			t.Errorf("%+v", r)
		}
	}
}

// A filter finds each syscall: by its class, or by the device that it is about.
func TestEachSyscallIsInAClassAndBeginsAreFoundWithTheirEnds(t *testing.T) {
	for _, name := range Syscalls() {
		for _, kind := range []event.Kind{event.Syscall, event.SyscallBegun} {
			e := event.Event{Kind: kind, Name: name}
			of := ClassesOf(&e)
			if len(of) == 0 {
				t.Errorf("%s is in no class", name)
			}
			for _, c := range append(of, strings.ToLower(name)) {
				m, err := (&Filter{Classes: []string{c}}).Matcher()
				if err != nil || !m(&e) {
					t.Errorf("%s %s is not found by %q: %v", kind, name, c, err)
				}
			}
		}
		if Untraced(name) != "" {
			t.Errorf("%s is registered and not traced", name)
		}
	}
	begun := event.Event{Kind: event.SyscallBegun, Name: "Write", Path: "/dev/shell"}
	for _, f := range []Filter{{Failed: true}, {Slow: time.Nanosecond}, {Log: true}} {
		if m, err := f.Matcher(); err != nil || m(&begun) {
			t.Errorf("%+v picks what has not ended: %v", f, err)
		}
	}
	if _, err := (&Filter{Classes: []string{"kill"}}).Matcher(); err == nil || !strings.Contains(err.Error(), `"kill" is no syscall of the trace: it is Signal`) {
		t.Error(err)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("/dev/**/[a-z]?*", "/dev/x")
	f.Fuzz(func(t *testing.T, form, path string) {
		m, err := (&Filter{Path: form}).Matcher()
		if err != nil {
			return
		}
		_ = m(&event.Event{Kind: event.Syscall, Path: path, Args: `{"path":"` + path + `"}`})
		if !strings.ContainsAny(form, "*?[") && form != "" && strings.Contains(form, "/") && !m(&event.Event{Path: form}) {
			t.Errorf("%q does not fit itself", form)
		}
	})
}
