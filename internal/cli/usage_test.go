package cli

import (
	"context"
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

func TestUsageErrorsNameTheArgumentAndTheMend(t *testing.T) {
	f := newFake(t)
	for _, c := range []struct{ args, text, mend string }{
		{"notify tset", `unknown command "tset" of notify`, "see: rnix notify --help"},
		{"daemon frob", `unknown command "frob" of daemon`, "see: rnix daemon --help"},
		{"daemon statu", `unknown command "statu" of daemon`, "or rnix daemon status"},
		{"mcp lst", `unknown command "lst" of mcp`, "did you mean: rnix mcp list"},
		{"status", `unknown command "status"`, "rnix daemon"},
		{"pss", `unknown command "pss"`, "did you mean: rnix ps\n"},
		{"login", `unknown command "login"`, "rnix providers"},
		{"sessions", `unknown command "sessions"`, "did you mean: rnix list-resumable"},
		{"foo", `unknown command "foo"`, `rnix run "foo"`},
		{"help frob", `there is no help about "frob"`, "see: rnix help --all"},
		{"help daemon stup", `there is no help about "stup"`, "did you mean: rnix help daemon stop"},
		{"completion frob", `"frob"`, "bash, zsh, fish or powershell"},
		{"completion", "completion needs a shell", "usage: rnix completion SHELL"},
		{"top now", `top takes no arguments, and "now" is one`, "usage: rnix top"},
		{"pause", "pause needs a process", "usage: rnix pause PROCESS..."},
		{"run --max-stps 3 x", "unknown flag: --max-stps", "did you mean: --max-steps"},
		{"run --max-steps many x", `--max-steps "many": want a whole number`, ""},
		{"run --max-steps 99999999999999999999 x", "the number is too large", ""},
		{"run --timeout 5 x", `--timeout "5": want a time such as`, ""},
		{"run --budget 5x x", `--budget "5x": want a number of tokens`, ""},
		{"run --detach=perhaps x", `--detach "perhaps": want true or false`, ""},
		{"run -Z x", "unknown flag: -Z", "see: rnix run --help"},
		{"run -Zq x", "unknown flag -Z in -Zq", "see: rnix run --help"},
		{"run x --name", "--name", "see: rnix run --help"},
		{"ctx", "ctx needs a process", "usage: rnix ctx PROCESS"},
		{"ctx 1 --step 0", "--step 0", "what the next prompt has"},
		{"ctx 1 --largest 0", "--largest 0 is not between 1 and 1000", ""},
		{"ctx 1 --messages", "--messages is for --json", "rnix ctx 1 --messages --json"},
		{"kill -FROB 1", `unknown signal "FROB"`, "use TERM, KILL"},
		{"kill -99 1", `unknown signal "99"`, "use TERM, KILL"},
	} {
		r := f.run(strings.Fields(c.args)...)
		if r.code != ExitUsage || r.out != "" || !strings.Contains(r.err, c.text) || !strings.Contains(r.err, c.mend) {
			t.Errorf("%s: code %d, %s%s", c.args, r.code, r.out, r.err)
		}
	}
}

func TestAnIntentOfNothingAndOneWithoutEndAreRefusedInFewWords(t *testing.T) {
	f := newFake(t)
	for _, blank := range []string{"", "  \t"} {
		if r := f.run(blank); r.code != ExitUsage || r.err != "rnix: the intent is empty\n  say what is to be done: rnix \"...\"\n" {
			t.Errorf("%q: %+v", blank, r)
		}
	}
	if r := f.run(strings.Repeat("x", 100_000)); r.code != ExitUsage || len(r.err) > 3*longestLine || !strings.Contains(r.err, "unknown command \"xxx") {
		t.Errorf("code %d, %d bytes", r.code, len(r.err))
	}
}

func TestCommandsWithOthersBelowThemShowTheirHelp(t *testing.T) {
	f := newFake(t)
	for _, name := range []string{"daemon", "mcp"} {
		if r := f.run(name); r.code != 0 || !strings.Contains(r.out, "Available Commands:") {
			t.Errorf("%+v", r)
		}
	}
	for topic, wants := range map[string][]string{"daemon stop": {"rnix daemon stop"}, "help": {"rnix help [COMMAND]"},
		"test run":    {"the commands of a case run as you", "Read the script.yaml of a stranger's case first"},
		"environment": {"RNIX_DATA_DIR", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "web_search"}} {
		r := f.run(append([]string{"help"}, strings.Fields(topic)...)...)
		if r.code != 0 || strings.HasSuffix(r.out, "\n\n") {
			t.Errorf("%s: %+v", topic, r)
		}
		for _, want := range wants {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s does not name %s: %s", topic, want, r.out)
			}
		}
	}
}

func TestErrorsBeginWithTheThingConcerned(t *testing.T) {
	cause := &types.SyscallError{Syscall: "Signal", Device: "night", PID: 3, Err: types.ErrCode("x y"), Code: types.ErrNotFound}
	for _, c := range []struct {
		err  error
		want string
	}{
		{cause, "night: x y"},
		{types.ToWire(cause).FromWire(), "night: x y"},
		{withMend(types.ToWire(cause).FromWire(), "mend"), "night: x y"},
		{types.Errorf(types.ErrNotFound, "Wait", "", "no more"), "no more"},
		{types.ToWire(&types.SyscallError{Syscall: "AddBudget", PID: 3, Err: types.ErrCode("x y"), Code: types.ErrInvalid}).FromWire(), "PID 3: x y"},
		{types.Errorf(types.ErrNotFound, "", "", "bare: text"), "bare: text"},
		{types.Errorf(types.ErrInvalid, "Call", "/a/s.yaml", "/a/s.yaml:2:1: unknown key"), "/a/s.yaml:2:1: unknown key"},
		{types.ToWire(types.Errorf(types.ErrInvalid, "Call", "/a/s.yaml", "/a/s.yaml:2:1: unknown key")).FromWire(), "/a/s.yaml:2:1: unknown key"},
		{types.Errorf(types.ErrInternal, "", "", "outer: %w", cause), "outer: Signal night (pid 3): x y"},
	} {
		if got := errorText(c.err); got != c.want {
			t.Errorf("%v: %q, want %q", c.err, got, c.want)
		}
	}
}

func TestSignalsToWhatIsOnDiskSayWhatIsLeft(t *testing.T) {
	f := newFake(t).serve()
	f.signal = func(bool, ipc.SignalRequest) (ipc.SignalResponse, error) {
		return ipc.SignalResponse{}, types.Errorf(types.ErrNotFound, "Signal", "3", "the process is suspended on disk; it is not running")
	}
	f.path = func(string, ipc.PathRequest) (ipc.PathResponse, error) {
		return ipc.PathResponse{}, types.Errorf(types.ErrNotFound, "Open", "/proc/3/status", "no process 3 is alive")
	}
	f.proc = func(string) (ipc.ProcDetail, error) {
		return ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{PID: 3}}}, nil
	}
	if r := f.run("kill", "-RESUME", "3"); r.code != ExitNotFound || !strings.Contains(r.err, "rnix resume 3\n") {
		t.Errorf("%+v", r)
	}
	if r := f.run("kill", "3"); r.code != ExitNotFound || !strings.Contains(r.err, "rnix wait 3") {
		t.Errorf("%+v", r)
	}
	if r := f.run("cat", "/proc/3/status"); r.code != ExitNotFound || !strings.Contains(r.err, "rnix steps 3, rnix strace 3") {
		t.Errorf("%+v", r)
	}
}

func TestEndsThatAnotherStartAvoidsSayHow(t *testing.T) {
	for reason, want := range map[string]string{types.ReasonMaxSteps: "--max-steps", types.ReasonBudget: "--budget"} {
		exit := types.ExitStatus{Code: types.ExitError, Reason: reason}
		if reason == types.ReasonBudget {
			exit.Code = types.ExitBudget
		}
		f := newFake(t).serve()
		f.wait = func(context.Context, ipc.WaitRequest) (ipc.WaitResponse, error) {
			return ipc.WaitResponse{PID: 3, Exit: exit}, nil
		}
		if r := f.run("wait", "3"); !strings.Contains(r.err, want) {
			t.Errorf("%+v", r)
		}
	}
}

func TestColumnsAreCutOnlyWhereNotAllFits(t *testing.T) {
	for width, cut := range map[int]bool{0: true, 80: false} {
		var b strings.Builder
		o := &output{out: stream{w: &b, width: width}}
		o.table([]column{{name: "A", max: 5}, {name: "B"}}, [][]cell{{text("123456789"), text("x")}})
		if got := strings.Contains(b.String(), "…"); got != cut {
			t.Errorf("width %d: %s", width, b.String())
		}
	}
}
