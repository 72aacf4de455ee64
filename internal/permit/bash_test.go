package permit

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/soak"
)

// pieces are what random command lines are made of.
var pieces = []string{
	"git", "git status", "git 'a b'", "gi\"t\" x", "g\\it y", "rm x", "rm", "true", "x=1", "x=$(rm y)", "PATH=.", "export x=1", "$x", "${x:-$(rm y)}", "$(rm x)", "`rm x`", "$((1+$(rm y)))",
	"<(rm x)", ">(rm x)", ">out", ">>out", "2>&1", ">/dev/null", "<in", "<<<$(rm x)", "<<E\n$(rm y)\nE\n", "<<'E'\n$(rm y)\nE\n", "<<E\n`git z`\nE\n",
	";", "&", "&&", "||", "|", "|&", "\n", "!", "(", ")", "{ ", "; }", "[ ", "]", "[[ ", "]]", "((", "))", "if ", "; then ", "; fi", "for i in ", "; do ", "; done", "while ", "case x in x) ", ";; esac",
	"function git { ", "git() { ", "f() { ", "coproc ", "time ", "eval ", "exec ", "command ", "env ", "sh -c 'rm x'", "bash -c \"git y\"", "builtin ", ". ./in", "source in", "trap 'rm x' EXIT",
	"'", "\"", "\\", "$", "{a,b}", "{git,rm}", "*", "~", "#", "a[$(rm x)]=1", "${!x}", "$'rm'", "$\"git\"", "alias git=rm", "shopt -s expand_aliases", "set -- rm", "$1", "\"$@\"", "let x=$(rm y)", "declare y=$(rm z)", "\t", " ",
	"\r", "\\\r\n", "\\\n", "for PATH in . ; do ", "for x in '$(rm y)' 'a[$(rm y)]'; do ", "${x@P}", "${a[x]}", "${y:x}", "$((x))", "[[ 'a[$(rm y)]' -eq 0 ]]", "[[ x -eq 0 ]]", "-v 'a[$(rm y)]'", "${PATH:=.}", "{PATH}</dev/null", "PS4='$(rm x)'",
}

// Whatever a line looks like that is covered by "git *": bash runs nothing else in it, and writes no file.
func TestWhatIsCoveredRunsNothingElse(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	lines := soak.Number(t, "RNIX_PERMIT_LINES", "random command lines", 60_000, 5_000_000)
	dir := t.TempDir()
	bin, work := filepath.Join(dir, "bin"), filepath.Join(dir, "work")
	for _, d := range []string{bin, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"git", "rm", "sh", "bash", "env", "true", "a", "b", "x"} { // each says that it ran
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!"+bash+"\nbuiltin printf '%s\\n' "+name+" >>\"$LOG\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := rand.New(rand.NewPCG(uint64(soak.Number(t, "RNIX_PERMIT_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32()))), 1))
	rule, err := Parse("shell git *")
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for range lines {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString(pieces[r.IntN(len(pieces))])
			if r.IntN(3) > 0 {
				b.WriteByte(' ')
			}
		}
		if line := b.String(); rule.covers(shell(line)) {
			covered[line] = true
		}
	}
	if len(covered) < 50 {
		t.Fatalf("only %d lines are covered: they are too wild", len(covered))
	}
	tried := 0
	for line := range covered {
		if tried++; tried > max(lines/200, 300) {
			break
		}
		log := filepath.Join(dir, "log")
		_ = os.Remove(log)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		c := exec.CommandContext(ctx, bash, "-c", line)
		c.Dir, c.Env = work, []string{"PATH=" + bin, "LOG=" + log}
		_ = c.Run() // it may well fail
		cancel()
		said, _ := os.ReadFile(log)
		if ran := strings.Fields(string(said)); slices.ContainsFunc(ran, func(name string) bool { return name != "git" }) {
			t.Errorf("%q is covered, and runs %q", line, ran)
		}
		if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
			t.Fatalf("%q is covered, and writes %v %v", line, left, err)
		}
	}
	t.Logf("%d of %d lines are covered, %d were run", len(covered), lines, tried)
}
