package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

func walk(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, k := range c.Commands() {
		walk(k, f)
	}
}

func TestEachCommandHasExamplesAndTrueExitCodes(t *testing.T) {
	var known []string
	for _, r := range exitTable() {
		known = append(known, strconv.Itoa(r.code))
	}
	if n := len(slices.Compact(slices.Clone(known))); n != len(known) {
		t.Error("a code is documented twice")
	}
	a, err := newApp(Host{Args: []string{}, Dir: "/"})
	if err != nil {
		t.Fatal(err)
	}
	walk(newRoot(a), func(c *cobra.Command) {
		if !c.Runnable() || c.Name() == "help" || c.Name() == "completion" || c.Hidden {
			return
		}
		if c.Example == "" || c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: example %q, short %q", c.CommandPath(), c.Example, c.Short)
		}
		for line := range strings.SplitSeq(c.Long, "\n") {
			if n := len([]rune(line)); n > 112 {
				t.Errorf("%s: a line of its help has %d characters: %s", c.CommandPath(), n, line)
			}
		}
		if c.HasParent() && c.Annotations[exitsKey] == "" {
			t.Errorf("%s does not document its exit codes", c.CommandPath())
		}
		for code := range strings.FieldsSeq(c.Annotations[exitsKey]) {
			if !slices.Contains(known, code) {
				t.Errorf("%s: exit code %s is not in the table", c.CommandPath(), code)
			}
		}
	})
}

func TestEachCommandIsFoundAloneAndAmongAll(t *testing.T) {
	for _, e := range entries() {
		for name := range strings.FieldsSeq(e.names) {
			a, _ := newApp(Host{Args: []string{name}, Dir: "/"})
			alone := newRoot(a)
			a, _ = newApp(Host{Args: []string{"--json", name}, Dir: "/"})
			all := newRoot(a)
			x, _, err1 := alone.Find([]string{name})
			y, _, err2 := all.Find([]string{name})
			if err1 != nil || err2 != nil || x.Use != y.Use || len(alone.Commands()) != 1 {
				t.Errorf("%s: %v, %v", name, err1, err2)
			}
		}
	}
}

func TestHelpSaysTheExitCodes(t *testing.T) {
	f := newFake(t)
	if r := f.run("help", "exit-codes"); r.code != 0 || !strings.Contains(r.out, "124") {
		t.Errorf("%+v", r)
	}
	if r := f.run("wait", "--help"); r.code != 0 || !strings.Contains(r.out, "  124  a time limit was reached") {
		t.Errorf("%+v", r)
	}
	if r := f.run("help", "--all"); r.code != 0 || !strings.Contains(r.out, "Run and steer agents:") || !strings.Contains(r.out, "--max-steps") {
		t.Errorf("%+v", r)
	}
	first := f.run("help")
	if n := strings.Count(first.out, "\n"); first.code != 0 || n > 45 || !strings.Contains(first.out, "rnix help --all ") {
		t.Errorf("%d lines: %+v", n, first)
	}
	for _, g := range daily {
		for _, name := range g.names {
			if !strings.Contains(first.out, "\n  "+name+" ") {
				t.Errorf("%s is not in the first help:\n%s", name, first.out)
			}
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"-h"}} {
		if r := f.run(args...); r != first {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := f.run("completion", shell); r.code != 0 || !strings.Contains(r.out, "rnix") {
			t.Errorf("%s: code %d", shell, r.code)
		}
	}
}

func TestErrorsHaveTheirExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
	}{
		{nil, 0}, {errors.New("x"), ExitError}, {types.Errorf(types.ErrInvalid, "", "", "x"), ExitUsage}, {types.Errorf(types.ErrAmbiguous, "", "", "x"), ExitNotFound},
		{types.Errorf(types.ErrPermission, "", "", "x"), ExitDenied}, {types.Errorf(types.ErrUnavailable, "Connect", "/run/x.sock", "x"), ExitUnreachable},
		{types.Errorf(types.ErrDisconnected, "wait", "/run/x.sock", "x"), ExitUnreachable}, {types.Errorf(types.ErrDisconnected, "Read", "/mnt/mcp/x", "x"), ExitError},
		{types.Errorf(types.ErrUnavailable, "Provider", "p", "x"), ExitNoModel}, {types.Errorf(types.ErrUnavailable, "Open", "/dev/shell", "x"), ExitError},
		{unreachable(types.Errorf(types.ErrTimeout, "Ensure", "", "x")), ExitUnreachable}, {types.Errorf(types.ErrTimeout, "wait", "", "x"), ExitTimeout},
	} {
		if got := exitCode(c.err); got != c.code {
			t.Errorf("%v: %d, want %d", c.err, got, c.code)
		}
	}
}

func TestUnwritableAnswerIsAFailure(t *testing.T) {
	f := newFake(t).serve()
	f.procs = someProcs()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("needs /dev/full")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var talk strings.Builder
	if code := Main(t.Context(), Host{Args: []string{"ps"}, Out: full, Err: &talk, Environ: f.env, Dir: f.dir}); code != ExitError || !strings.Contains(talk.String(), "no space left") {
		t.Errorf("code %d, %s", code, talk.String())
	}
}

func TestColourOnlyWhereItIsWanted(t *testing.T) {
	f := newFake(t).serve()
	f.procs = someProcs()
	for _, c := range []struct {
		env  []string
		args []string
		want bool
	}{
		{nil, []string{"ps"}, false}, {[]string{"CLICOLOR_FORCE=1"}, []string{"ps"}, true}, {[]string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}, []string{"ps"}, false},
		{[]string{"CLICOLOR_FORCE=1"}, []string{"ps", "--no-color"}, false}, {[]string{"CLICOLOR_FORCE=1"}, []string{"ps", "--json"}, false},
	} {
		if got := strings.Contains(f.runIn(strings.NewReader(""), c.env, c.args...).out, "\x1b["); got != c.want {
			t.Errorf("%v %v: colour %v", c.env, c.args, got)
		}
	}
}

func TestEventsAreCleanOrRaw(t *testing.T) {
	f := newFake(t).serve()
	var asked ipc.EventsRequest
	f.events = func(_ context.Context, r ipc.EventsRequest, out *ipc.Stream) error {
		asked = r
		picked := func(*event.Event) bool { return true }
		if x := r.Filter; x != nil {
			var err error
			if picked, err = (&debug.Filter{Classes: x.Classes, Log: x.Log, Categories: x.Categories, Level: debug.Level(x.Level)}).Matcher(); err != nil {
				return err
			}
		}
		for _, e := range []event.Event{
			{Seq: 1, Kind: event.LogLine, Name: "think", Text: "hm\x1b[2J", PID: 3}, {Seq: 2, Kind: event.LogLine, Name: "tool", Text: "ls", PID: 3},
			{Seq: 4, Kind: event.Syscall, Name: "Open", Path: "/dev/fs", Result: "fd 3", PID: 3},
		} {
			if e.Seq == 4 {
				_ = out.Missed(3, 3)
			}
			if (len(r.Kinds) == 0 || contains(r.Kinds, e.Kind)) && picked(&e) {
				_ = out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, &e))
			}
		}
		return nil
	}
	r := f.run("log", "3", "-f", "--category", "think")
	if r.code != 0 || strings.Count(r.out, "\n") != 2 || !strings.Contains(r.out, "[think] hm\n") || !strings.Contains(r.out, "missed 1 event, 3 to 3") || !strings.Contains(r.err, "missing") {
		t.Errorf("%+v", r)
	}
	if !asked.Follow || !asked.UntilEnd || !asked.History || asked.Target != "3" {
		t.Errorf("%+v", asked)
	}
	if r := f.run("strace", "3"); r.code != 0 || !strings.Contains(r.out, "Open(/dev/fs) = fd 3") || asked.Follow {
		t.Errorf("%+v", r)
	}
	if r := f.run("log", "3", "--json"); strings.Count(r.out, `"kind":"log"`) != 2 {
		t.Errorf("%+v", r)
	}
	if r := f.run("log", "3", "-c", "frob"); r.code != ExitUsage {
		t.Errorf("%+v", r)
	}
}

func TestInitKeepsWhatIsThere(t *testing.T) {
	f := newFake(t)
	file := filepath.Join(f.dir, ".rnix", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := f.run("init")
	if b, _ := os.ReadFile(file); r.code != 0 || string(b) != "# mine\n" || !strings.Contains(r.out, "kept  .rnix/config.yaml") || !strings.Contains(r.out, "wrote  .rnix/agents/project/agent.yaml") {
		t.Errorf("%+v", r)
	}
}

func TestDoctorFindsOpenDirectoriesAndMistakes(t *testing.T) {
	f := newFake(t).serve()
	f.status = ipc.Status{PID: 1, Version: "dev"}
	f.provs = ipc.ProvidersResponse{Chosen: "p", Why: "the first", Providers: []ipc.Provider{{Name: "p"}}}
	if err := os.MkdirAll(filepath.Join(f.dir, ".rnix/data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if r := f.run("doctor"); r.code != 0 || !strings.Contains(r.out, "the first") {
		t.Errorf("%+v", r)
	}
	f.provs.Problems = []string{"/x/providers.yaml:3:5: unknown key"}
	if r := f.run("doctor"); r.code != ExitError || !strings.Contains(r.out, "providers.yaml:3:5") {
		t.Errorf("%+v", r)
	}
	f.provs.Problems = nil
	if err := os.Chmod(filepath.Join(f.dir, ".rnix/data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if r := f.run("doctor", "--json"); r.code != ExitError || !strings.Contains(r.out, `"check":"data","status":"broken"`) {
		t.Errorf("%+v", r)
	}
}

func TestFormatOfErrorsIsKnownBeforeTheFlagsAre(t *testing.T) {
	for args, want := range map[string]format{
		"ps": asText, "ps --json": asJSON, "run --output-format stream-json x": asStream, "run --output-format=json": asJSON,
		"run -- --json": asText, "run --output-format": asText, "run --json --output-format stream-json": asStream,
	} {
		if got := formatOf(strings.Fields(args)); got != want {
			t.Errorf("%s: %d", args, got)
		}
	}
}

func TestCellsCountWhatATerminalShows(t *testing.T) {
	for s, want := range map[string]int{"": 0, "abc": 3, "数据": 4, "e\u0301": 1, "🙂": 2, "├─ ": 3, "ﾊﾝ": 2, "한글": 4} {
		if got := cells(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{{"abcdef", 4, "abc…"}, {"数据库", 4, "数…"}, {"abc", 3, "abc"}, {"abc", 0, "abc"}, {"数", 1, "…"}} {
		if got := cut(c.s, c.n); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("数据 e\u0301 🙂", 5)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n %= 200; n < 1 || !utf8.ValidString(s) {
			return
		}
		if got := cut(s, n); cells(got) > n || !utf8.ValidString(got) {
			t.Errorf("cut(%q, %d) = %q of %d cells", s, n, got, cells(got))
		}
	})
}

func FuzzCount(f *testing.F) {
	for _, s := range []string{"200k", "1.5M", "0", "-1", "", "1e9", "0x10", "NaN"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var n count
		if err := n.Set(s); err == nil {
			var again count
			if n < 0 || again.Set(n.String()) != nil || again != n {
				t.Errorf("%q is %d, which is read as %d", s, n, again)
			}
		}
	})
}

func TestTokenCountsHaveUnits(t *testing.T) {
	for s, want := range map[string]count{"0": 0, "50000": 50000, "200k": 200000, "1.5M": 1500000} {
		var n count
		if err := n.Set(s); err != nil || n != want {
			t.Errorf("%s: %d, %v", s, n, err)
		}
	}
	for _, s := range []string{"", "k", "-1", "1e3", "0x5", "inf", "1G", "99999999999M"} {
		var n count
		if err := n.Set(s); err == nil {
			t.Errorf("%s is %d", s, n)
		}
	}
}
