package ash

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestScriptsMeanWhatTheyMeanInAShell runs scripts with agents: what they write, and their status.
func TestScriptsMeanWhatTheyMeanInAShell(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"pipe":            {`spawn "Analyze code" --agent=analyst | spawn "Generate docs"`, "did Generate docs <did Analyze code> =0"},
		"variable":        {`r=$(spawn a); echo "[$r] $?"`, "[did a] 0 =0"},
		"status":          {`spawn fail; echo $?`, "3 =0"},
		"fallback":        {`spawn fail || spawn b`, "did b =0"},
		"and":             {`spawn fail && spawn b`, "=3"},
		"errexit":         {`set -e; spawn fail; echo never`, "=3"},
		"errexit loop":    {`set -e; for i in 1 2; do spawn "fail$i"; done; echo never`, "=3"},
		"errexit cond":    {`set -e; if spawn fail; then echo no; fi; spawn fail || true; ! spawn a > /dev/null || echo x; echo end`, "x\nend =0"},
		"pipefail":        {`set -o pipefail; spawn fail | cat; echo $?; set +o pipefail; spawn fail | cat; echo $?`, "3\n0 =0"},
		"while reads all": {`printf 'a\nb\n' | while read x; do spawn "$x"; done`, "did a\ndid b =0"},
		"function reads":  {`f() { spawn r; }; echo data | f; printf '1\n2\n' | while read x; do f; done`, "did r <data>\ndid r\ndid r =0"},
		"heredoc":         {"spawn s <<EOF\nin $((1+1))\nEOF\nspawn t <<< word", "did s <in 2>\ndid t <word> =0"},
		"file":            {`echo text > f; spawn s < f; for i in f; do spawn u < "$i"; done`, "did s <text>\ndid u <text> =0"},
		"from null":       {`spawn s < /dev/null`, "did s =0"},
		"local":           {`x=out; f() { local x=in; echo $x; }; f; echo $x`, "in\nout =0"},
		"wait status":     {`spawn fail & wait $!; echo $?; (exit 4) & wait $!; echo $?; wait; echo $?`, "3\n4\n0 =0"},
		"last job":        {`spawn a > /dev/null & echo $!; sleep 0 & echo $! "${!}" x$!y; wait`, "1\n%2 %2 x%2y =0"},
		"wait for names":  {`spawn a >/dev/null & spawn fail & wait %1; echo $?; wait 2; echo $?; wait %9; echo $?`, "0\n3\n127 =0"},
		"wait any":        {`spawn fail & wait -n; echo $?; wait -n; echo $?`, "3\n127 =0"},
		"jobs":            {`spawn long & jobs; kill %1; wait; echo $?`, "[1]  running   PID 1  spawn long\n0 =0"},
		"kill by pid":     {`spawn long & kill -9 $!; wait $!; echo $?`, "5 =0"},
		"exit in a job":   {`{ exit 7; } & wait $!; echo $?; (set -e; false; echo no) & wait $!; echo $?`, "7\n1 =0"},
		"job in a job":    {`( spawn a & wait $!; echo "in $?" ) & wait $!; echo $?`, "did a\nin 0\n0 =0"},
		"background pipe": {`spawn a | spawn b & wait $!; echo $?`, "did b <did a>\n0 =0"},
		"background cond": {`false || spawn a & wait; for i in 1 2; do sleep 0 & done; wait; echo $!`, "did a\n%3 =0"},
		"background here": {"cat <<EOF &\nhere\nEOF\nwait", "here =0"},
		"case":            {"case x in x) spawn a & ;; esac; wait; if true; then sleep 0 & fi; wait", "did a =0"},
		"glob":            {`echo /proc/*/status; echo /proc/[2-9]`, "/proc/1/status /proc/2/status\n/proc/2 =0"},
		"tests":           {`test -f /proc/1/status && test -d /proc/1 && [ ! -e /proc/9 ] && [[ -r /proc/2/intent ]] && echo ok`, "ok =0"},
		"reading":         {`x=$(< /proc/1/status); echo $x; read y < /proc/2/intent; echo $y; cat /proc/1/status - <<< z`, "State: dead\nx\nState: dead\nz =0"},
		"tools":           {`grep -l run /proc/1/status /proc/2/status; tail -n 1 /proc/2/intent; grep -rc State /proc/1`, "/proc/2/status\ny\n/proc/1/status:1 =0"},
		"writing":         {`echo a > /dev/x; cat /dev/x; echo b | tee /dev/y > /dev/null; cat /dev/y`, "a\nb =0"},
		"system devices":  {`echo a > /dev/null; echo b > /dev/fd/1 || echo no; { echo c > /dev/stderr; } 2>&1; x=$(cat < /dev/stdin <<< d); head -c 1 /dev/zero | wc -c`, "b\nc\n1 =0"},
		"eval":            {`x='spawn a & wait $!'; eval "$x"; echo $?; eval 'echo "$0" $#' 1 2`, "did a\n0\nx.ash 0 1 2 =0"},
		"trap":            {`trap 'echo "end $?"; wait $!' EXIT; spawn fail & wait $!`, "end 3 =3"},
		"return":          {`f() { rc=$?; return $rc; }; (exit 6); f; echo $?`, "6 =0"},
		"own kill wins":   {`kill() { echo "mine $1"; }; kill 3`, "mine 3 =0"},
		"all ways":        {`spawn long & eval "kill $!"; wait; builtin wait; command wait; echo $?`, "0 =0"},
		"known":           {`command -v spawn; type -t spawn; type spawn; command -v nosuch; echo $?`, "spawn\nspawn is a command of this shell (see: help spawn)\nspawn is a command of this shell (see: help spawn)\n1 =0"},
		"environment":     {`export A=1; B=2; spawn a >/dev/null & env | grep -E '^(A|B|_rnix.*|LD_.*)=' | sort; wait`, "A=1\nLD_BIND_NOW=1 =0"},
		"no fence":        {`v=LD_PRE; declare -x "${v}LOAD=/no.so"; env | grep -c LD_PRELOAD; echo ok`, "0\nok =0"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := shell(t)
			out, errs, code := tr.run(c.script)
			if got := strings.TrimSpace(say(out, code)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s\nand it said\n%s", got, c.want, errs)
			}
		})
	}
}

// TestMessagesNameThePlace looks at what scripts say that go wrong.
func TestMessagesNameThePlace(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"unknown":       {"echo\n  nosuch x", "x.ash:2:3: nosuch: command not found; see: help"},
		"behind a job":  {"sleep 0 & sleep 0 & nosuch\nwait", "x.ash:1:21: nosuch: command not found; see: help"},
		"in a job":      {"true; nosuch & wait $!", "x.ash:1:7: nosuch: command not found; see: help"},
		"agent":         {"f() {\n\tspawn fail\n}\nf", "x.ash:2:2: spawn: it failed"},
		"after $!":      {"echo $! $! >/dev/null; nosuch", "x.ash:1:24: nosuch: command not found; see: help"},
		"loop":          {"while true; do\n nosuch; break; done", "x.ash:2:2: nosuch: command not found; see: help"},
		"eval":          {"eval 'true;\n nosuch'; nosuch", "eval:2:2: nosuch: command not found; see: help\nx.ash:2:11: nosuch: command not found; see: help"},
		"sourced":       {"source lib.sh; g; nosuch", "lib.sh:2:7: nosuch: command not found; see: help\nx.ash:1:19: nosuch: command not found; see: help"},
		"syntax":        {"echo\nif true; then", "x.ash:2:10: `then` must be followed by a statement list"},
		"preload":       {"true\nLD_PRELOAD=x true", "x.ash:2:1: LD_PRELOAD may not be set here: it would make programs load code from elsewhere; set it before the shell is started, or use: env LD_PRELOAD=... COMMAND"},
		"eval preload":  {"eval 'export LD_AUDIT=x'", "x.ash:1:1: eval:1:8: LD_AUDIT may not be set here: it would make programs load code from elsewhere; set it before the shell is started, or use: env LD_AUDIT=... COMMAND"},
		"append":        {"echo x >> /dev/x", "open /dev/x: nothing can be added to a path of the name space; a write with > replaces"},
		"write":         {"echo x > /proc/1/y || echo failed >&2", "/proc/1/y: read-only\nfailed"},
		"missing":       {"cat /proc/9/x", "x.ash:1:1: cat: /proc/9/x: no such path"},
		"cd":            {"cd /proc/1", "x.ash:1:1: cd: /proc/1 is in the name space of agents; the shell stays in directories of this system"},
		"follow":        {"tail -f /proc/1/status", "x.ash:1:1: tail: a path of the name space cannot be followed; use: log -f PROCESS"},
		"bg":            {"bg", "x.ash:1:1: bg: a job that was started with & is in the background already; resume a paused agent with: resume PID"},
		"no such job":   {"kill %4", "x.ash:1:1: kill: %4: no such job; see: jobs"},
		"source itself": {"source nothing.sh", "x.ash:1:1: source: DIR/nothing.sh: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := shell(t)
			if err := os.WriteFile(tr.dir+"/lib.sh", []byte("\ng() { nosuch; }\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, errs, _ := tr.run(c.script)
			if errs = strings.ReplaceAll(errs, tr.dir, "DIR"); errs != c.want {
				t.Errorf("it said\n%s\nwant\n%s", errs, c.want)
			}
		})
	}
}

// TestEveryPlaceIsFoundAgain checks the places of all commands of a text that is full of what is
// rewritten.
func TestEveryPlaceIsFoundAgain(t *testing.T) {
	text := "c1 & c2 $! &\nwhile c3; do c4 & c5; done; c6 > /dev/x; { c7 > /proc/y & } | c8 ${!}; $(c9 &) c10\ncat <<E & c11\nbody\nE\n! c12 & c13"
	s, err := compile("x", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"c1 ", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13"} {
		want, wantCol := place(text, strings.Index(text, word))
		if line, col := s.at(strings.LastIndex(s.run, word)); line != want || col != wantCol {
			t.Errorf("%s is said to be at %d:%d, and is at %d:%d of what was written", word, line, col, want, wantCol)
		}
	}
	if strings.Count(s.run, "\n") != strings.Count(text, "\n") {
		t.Errorf("lines were added: %q", s.run)
	}
}

// TestInterruptStopsTheAgentAndThenTheScript: the agent is asked once, what comes after it is not run.
func TestInterruptStopsTheAgentAndThenTheScript(t *testing.T) {
	for _, script := range []string{"spawn long; echo after", "spawn 'long deaf'; echo after", "for i in 1 2; do spawn long || true; done; echo after",
		"spawn long | cat; echo after", "x=$(spawn long); echo after $x"} {
		tr := shell(t)
		out := make(chan string)
		go func() {
			text, _, code := tr.run(script)
			out <- say(text, code)
		}()
		tr.await(1)
		tr.Interrupt(os.Interrupt, true)
		if got := <-out; strings.TrimSpace(got) != "=130" {
			t.Errorf("%s: %q", script, got)
		}
	}
}

// await waits until so many agents were started.
func (tr *trial) await(n int) {
	for {
		tr.mu.Lock()
		have := len(tr.agents)
		tr.mu.Unlock()
		if have >= n {
			return
		}
		<-time.After(time.Millisecond)
	}
}

// TestInterruptEndsWhatCallsNothing: loops without commands, and waiting, end too.
func TestInterruptEndsWhatCallsNothing(t *testing.T) {
	for _, script := range []string{"sleep 0; spawn a >/dev/null; while (( 1 )); do x=1; done", "spawn a >/dev/null; while :; do :; done", "spawn long & wait; echo no"} {
		tr := shell(t)
		code := make(chan int)
		go func() {
			_, _, c := tr.run(script)
			code <- c
		}()
		tr.await(1)
		tr.Interrupt(os.Interrupt, true)
		if c := <-code; c != 130 {
			t.Errorf("%s: %d", script, c)
		}
		close(tr.host.long)
		for _, j := range tr.jobs.all() {
			<-j.done
		}
	}
}

// TestBackgroundIsNotInterrupted: Ctrl+C is for the foreground.
func TestBackgroundIsNotInterrupted(t *testing.T) {
	tr := shell(t)
	code := make(chan int)
	go func() {
		_, _, c := tr.run("spawn long & spawn long")
		code <- c
	}()
	tr.await(2)
	tr.Interrupt(os.Interrupt, true)
	if c := <-code; c != 130 {
		t.Errorf("status %d", c)
	}
	j := tr.jobs.get(1)
	select {
	case <-j.done:
		t.Error("the job in the background has ended too")
	default:
	}
	close(tr.host.long)
	<-j.done
}

// TestTermEndsTheShell: the exit status says which signal it was.
func TestTermEndsTheShell(t *testing.T) {
	tr := shell(t)
	code := make(chan int)
	go func() {
		_, _, c := tr.run("spawn long; echo no")
		code <- c
	}()
	tr.await(1)
	tr.Interrupt(syscall.SIGTERM, true)
	if c := <-code; c != 143 {
		t.Errorf("status %d", c)
	}
}

// TestTooMuchIsRefused: what cannot be run safely is not begun, and says why.
func TestTooMuchIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"long":   {strings.Repeat("echo x\n", MaxSource/7+1), "65536 are allowed"},
		"nested": {strings.Repeat("{ ", 900) + "echo" + strings.Repeat("; }", 900), "x:1:999: the code is nested too deeply"},
		"zero":   {"echo a\x00b", "x:1:7: there is a zero byte"},
	} {
		if _, err := compile("x", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBombsOfTheShellEndWithAMessage: too many jobs, and too many pipes.
func TestBombsOfTheShellEndWithAMessage(t *testing.T) {
	for script, want := range map[string]string{
		"f() { f & f; }; f": "x.ash:1:7: 500 background commands run already",
		"f() { f | f; }; f": "the script does too much at the same time and was ended",
		"i=0; while ((i++ < 600)); do { sleep 60; } & done; wait": "500 background commands run already",
	} {
		tr := shell(t)
		_, errs, code := tr.run(script)
		if !strings.Contains(errs, want) || code != 1 {
			t.Errorf("%s: %d %s", script, code, errs)
		}
		tr.cleared()
	}
}

// cleared waits until nothing runs any more for the shell.
func (tr *trial) cleared() {
	for _, j := range tr.jobs.all() {
		_, programs := tr.jobs.reach(j, true)
		for _, p := range programs {
			_ = p.Kill()
		}
	}
	for _, j := range tr.jobs.all() {
		<-j.done
	}
}

// TestTypedTakesALineApart is what completion knows of a line.
func TestTypedTakesALineApart(t *testing.T) {
	for line, want := range map[string]string{
		"":                    "|",
		"sp":                  "|sp",
		"spawn ":              "spawn||",
		"spawn 'a b' --ag":    "spawn,a b|--ag",
		"a | kill 1":          "kill|1",
		"x=$(st":              "|st",
		"cat < /pr":           "<|/pr",
		`cat a\ b c\ d`:       "cat,a b|c d",
		"true && { wait ":     "wait||",
		`spawn "Review the `:  "spawn|Review the ",
		"for f in a; do spaw": "do|spaw",
	} {
		w := Typed(line, len(line))
		if got := strings.Join(w.Before, ",") + "|" + w.Word; got != strings.TrimSuffix(want, "|") && got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
		if !strings.HasPrefix(line, w.Head) {
			t.Errorf("%q: the head is %q", line, w.Head)
		}
	}
}

// TestRenamerFindsTheNameAcrossWrites, however it is cut.
func TestRenamerFindsTheNameAcrossWrites(t *testing.T) {
	text := "/tmp/rnix-1/proc/1: a\n/tmp/rnix-/tmp/rnix-1/proc/2 /tmp"
	for size := 1; size < len(text); size++ {
		var b strings.Builder
		r := &renamer{w: &b, old: []byte("/tmp/rnix-1")}
		for chunk := range slices.Chunk([]byte(text), size) {
			if _, err := r.Write(chunk); err != nil {
				t.Fatal(err)
			}
		}
		r.flush()
		if want := "/proc/1: a\n/tmp/rnix-/proc/2 /tmp"; b.String() != want {
			t.Errorf("in pieces of %d: %q", size, b.String())
		}
	}
}

// TestHistoryIsBoundedAndPrivate: the file keeps the last lines, each once in a row.
func TestHistoryIsBoundedAndPrivate(t *testing.T) {
	path := t.TempDir() + "/sub/h"
	h := openHistory(path)
	long := strings.Repeat("x", 1000)
	for i := range 700 {
		h.add(long + string(rune('a'+i%26)))
	}
	h.add("last")
	h.add("last")
	st, err := os.Stat(path)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("%v %v", st, err)
	}
	again := openHistory(path)
	if n := len(again.lines); n < 500 || again.lines[n-1] != "last" || again.lines[n-2] == "last" {
		t.Errorf("%d lines, the last ones %q", n, again.lines[max(n-2, 0):])
	}
	for range 3 {
		if next := openHistory(path); !slices.Equal(next.lines, again.lines) {
			t.Errorf("%d lines became %d", len(again.lines), len(next.lines))
		}
	}
	if st, err = os.Stat(path); err != nil || st.Size() > 2*maxHistory || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
}

// FuzzCompile: whatever is typed, what is run parses again if what was written did, and every place lies
// in the text.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{"a & b", "x=$!; c > /dev/y &", "while a; do b & done", "cat <<E &\n$(a &)\nE\n", "`a & b`", "\"$(a & echo $!)\"", "case a in b) c & ;; esac", "f() { a & }; f", "! a > /dev/x &", "time a &"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := compile("x", text)
		if err != nil {
			return
		}
		if _, err := s.file(); err != nil {
			t.Fatalf("%q became %q: %v", text, s.run, err)
		}
		for i := range len(s.run) {
			if line, col := s.at(i); line < 1 || col < 1 || line > strings.Count(text, "\n")+1 {
				t.Fatalf("%q: %d:%d", text, line, col)
			}
		}
	})
}
