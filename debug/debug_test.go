package debug

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"rnix/internal/event"
	"rnix/types"
)

var update = flag.Bool("update", false, "write the golden files")

var noon = time.Date(2026, 3, 4, 12, 0, 0, 123e6, time.UTC)

func TestEventsAreRenderedForPeople(t *testing.T) {
	events := []event.Event{
		{Kind: event.Spawned, Provider: "offline", Intent: "by nobody's child"},
		{Kind: event.Spawned, PPID: 1, Provider: "claude", Model: "opus", Intent: "say \"hi\"\x1b[31m"},
		{Kind: event.Syscall, Name: "Open", Path: "/dev/fs/main.go", Args: "mode=r", Result: "fd 3", Dur: 15 * time.Microsecond},
		{Kind: event.Syscall, Name: "Read", Args: "fd=3", Result: strings.Repeat("é", 400), Dur: 1250 * time.Microsecond},
		{Kind: event.Syscall, Name: "Write", Path: "/dev/llm/claude", Result: "120 tokens", Dur: 32100 * time.Millisecond},
		{Kind: event.Syscall, Name: "Open", Path: "/dev/x\n12:00:00.123 9 Kill(1) = ok", Err: "not found: \x1b]0;title\x07no device", Dur: 500},
		{Kind: event.Syscall, Name: "Close"},
		{Kind: event.SyscallBegun, Name: "Wait", Args: "8"},
		{Kind: event.SyscallBegun, Name: "Write", Path: "/dev/llm/claude", Args: "x\n\x1b[2J"},
		{Kind: event.LogLine, Name: "think", Text: "first\nsecond\n"},
		{Kind: event.StepStarted, Step: 3, Total: 20},
		{Kind: event.StepEnded, Step: 3, Total: 20, Name: "tool_call", Text: "reads main.go", Tokens: 1234567, Dur: 2300 * time.Millisecond},
		{Kind: event.StepEnded, Step: 4, Err: "the model is away", Dur: 65 * time.Minute},
		{Kind: event.StateChanged, From: types.StateCreated, To: types.StateRunning},
		{Kind: event.Signalled, Name: "SIGTERM", Result: "delivered"},
		{Kind: event.Paused, Text: "budget"},
		{Kind: event.Resumed, Dur: 245 * time.Second},
		{Kind: event.Waiting, Text: "rate limit", Until: noon.Add(time.Minute)},
		{Kind: event.Waiting, Text: "approval"},
		{Kind: event.Waiting},
		{Kind: event.Exited, Tokens: 10, Dur: time.Second},
		{Kind: event.Exited, Exit: &types.ExitStatus{Code: 2, Reason: "budget_exceeded"}, Tokens: 1000, Dur: time.Second},
		{Kind: event.Reaped},
		{Kind: event.Reparented, PPID: 1},
		{Kind: event.Compacted, Text: "40 messages became 3"},
		{Kind: event.Mounted, Path: "/mnt/mcp/7-git", Dur: 99999 * time.Microsecond},
		{Kind: event.Unmounted, Path: "/mnt/mcp/7-git"},
		{Kind: event.StorageError, Path: "/data/steps.jsonl", Err: "no space left on device"},
		{Kind: event.Refused, Name: "write", Path: "/etc/x", Text: "the sandbox does not let commands write /etc/x\x1b[31m; a person can allow its directory under sandbox.write in config.yaml, and this sentence is longer than the others are and kept whole"},
		{Kind: event.Snapshot, Name: "copy", Text: "a6acac769205cd0caf64724b61bbcfd80ce7da358f2a9e739d37b0e956b71d3c", Dur: 34300 * time.Microsecond},
		{Kind: event.Snapshot, Name: "git", Text: "a6ac", Dur: time.Millisecond},
		{Kind: event.Grouped, Name: "joined", Step: 4},
		{Kind: event.Lag, Text: "events 1 to 9 may be missing here"},
		{Kind: "later", Text: "of a newer daemon"},
	}
	var b strings.Builder
	for i := range events {
		events[i].Time, events[i].PID = noon, 7
		line := Line(&events[i])
		b.WriteString(line + "\n")
		if events[i].Kind != event.LogLine && strings.Contains(line, "\n") {
			t.Errorf("more than one line: %q", line)
		}
	}
	path := filepath.Join("testdata", "lines.golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(b.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != b.String() {
		t.Errorf("%v; run with -update and read the difference. Got:\n%s", err, b.String())
	}
}

func TestUnregisteredSyscallIsMarked(t *testing.T) {
	if e := NewEvent(1, "Dance", "", "", nil, 0); e.Syscall != "Dance?" {
		t.Errorf("got %q", e.Syscall)
	}
	Register("Sing")
	if e := NewEvent(1, "Sing", "", "", nil, 0); e.Syscall != "Sing" || !Registered("Spawn") {
		t.Errorf("got %q", e.Syscall)
	}
	if len(Syscalls()) < len(syscalls)+1 {
		t.Errorf("%d names", len(Syscalls()))
	}
}

func TestSyscallSurvivesItsWayThroughTheLog(t *testing.T) {
	want := NewEvent(7, "Open", strings.Repeat("x", 5000), "fd 3", errors.New("no"), time.Second)
	if len(want.Args) > MaxText {
		t.Errorf("%d bytes of arguments", len(want.Args))
	}
	want.Time = noon
	e := ToEvent(want, types.NewUUID(), 3)
	got, ok := SyscallEvent(&e)
	if !ok || got != want || e.Step != 3 {
		t.Errorf("got %+v", got)
	}
	if _, ok := LogEntry(&e); ok {
		t.Error("a syscall is not a line of the log")
	}
}

func TestTerminalSequencesAreRemoved(t *testing.T) {
	for in, want := range map[string]string{
		"clean é😀\n\ttext":                        "clean é😀\n\ttext",
		"\x1b[31mred\x1b[0m":                      "red",
		"\u009b31mred":                            "red",
		"\x9b31mred":                              "\ufffd31mred",
		"a\x1b]0;title\x07b":                      "ab",
		"a\x1b]52;c;SGVsbG8=\x1b\\b":              "ab",
		"a\u009d0;title\u009cb":                   "ab",
		"a\x1bP1$r\x1b\\b":                        "ab",
		"a\x1b_Gx\x1b\\b\x1b^x\x1b\\c":            "abc",
		"a\x1b]no end":                            "ano end",
		"a\x1b]no end\x1b[2Jb":                    "ano endb",
		"\x1b(Bx\x1b=y\x1bcz":                     "xyz",
		"\x1b[\x1b[2Jx":                           "x",
		"\x1b":                                    "",
		"over\rwritten\b\x00\x7f":                 "overwritten",
		"\u202etxt.exe\u2069":                     "<U+202E>txt.exe<U+2069>",
		"tag\U000e0041":                           "tag<U+E0041>",
		"\xff\xfe":                                "\ufffd\ufffd",
		"\x1b[" + strings.Repeat("1", 9000) + "m": strings.Repeat("1", 9000) + "m",
	} {
		if got := Sanitize(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzSanitize(f *testing.F) {
	f.Add("\x1b[31m\u009b\x1b]0;x\x07\xc2\x9b\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		got := Sanitize(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || deceptive(r) {
				t.Fatalf("%U in %q, made of %q", r, got, s)
			}
		}
		if again := Sanitize(got); again != got {
			t.Fatalf("%q becomes %q", got, again)
		}
		line := StraceLine(types.SyscallEvent{Syscall: s, Args: s, Result: s, Err: s})
		if strings.ContainsAny(line, "\n\t") || !utf8.ValidString(line) {
			t.Fatalf("not one line: %q", line)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("héllo wörld, this is a text that is too long for its place", 40)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		got := Cut(s, limit%1000)
		if len(got) > max(limit%1000, 32) || utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Fatalf("%d bytes for %d: %q", len(got), limit%1000, got)
		}
		if len(s) <= 32 && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1000: "1µs", 1500: "1.5µs", 123456: "123µs", 45678 * time.Microsecond: "45.7ms", time.Second: "1s",
		59*time.Second + 900*time.Millisecond: "59.9s", 61 * time.Second: "1m01s", 26*time.Hour + 5*time.Minute: "26h05m", -time.Second: "-1s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
