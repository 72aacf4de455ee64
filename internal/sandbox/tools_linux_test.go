//go:build amd64 || arm64

package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool is something that people do every day.
type tool struct {
	name  string
	needs string // programs, separated by blanks
	line  string
	// why the Landlock rung cannot do it; it must fail there.
	landlock string
}

const (
	noLoopback = "there is no loopback without an open network"
	noShared   = "/dev/shm is shared with other programs"
	noTemp     = "/tmp is shared with other programs"
)

var tools = []tool{
	{"git commit, branch, stash", "git", `echo a >>file && git add . && git commit -qm second && git branch b && git checkout -q b && echo c >>file && git stash -q && git stash pop -q && git log --oneline | grep second`, ""},
	{"git grep and diff", "git", `echo z >>file; git diff --stat | grep file && git grep text`, ""},
	{"go build and test", "go", `printf 'module x\ngo 1.26\n' >go.mod; printf 'package x\nimport "testing"\nfunc TestX(t *testing.T) { t.TempDir() }\n' >x_test.go; printf 'package x\n' >x.go; GOFLAGS=-mod=mod GOTOOLCHAIN=local go build ./... && GOTOOLCHAIN=local go test ./...`, ""},
	{"go test with a server", "go", `printf 'module x\ngo 1.26\n' >go.mod; printf 'package x\nimport ("testing"; "net/http/httptest"; "net/http")\nfunc TestX(t *testing.T) { s := httptest.NewServer(nil); defer s.Close(); if _, err := http.Get(s.URL); err != nil { t.Fatal(err) } }\n' >x_test.go; GOTOOLCHAIN=local go test ./...`, noLoopback},
	{"node with a child", "node", `node -e 'require("child_process").execSync("echo child",{stdio:"inherit"})' | grep child`, ""},
	{"node with a worker", "node", `node -e 'const {Worker}=require("worker_threads");new Worker("console.log(1)",{eval:true})' | grep 1`, ""},
	{"a server and its client in node", "node", `node -e 'const h=require("http");const s=h.createServer((q,r)=>r.end("served")).listen(0,"127.0.0.1",()=>h.get({port:s.address().port},r=>{r.pipe(process.stdout);r.on("end",()=>s.close())}))' | grep served`, noLoopback},
	{"npm run", "npm", `printf '{"name":"x","scripts":{"go":"echo ran"}}' >package.json; npm run -s go | grep ran`, ""},
	{"python with a process", "python3", `python3 -c 'import subprocess;subprocess.run(["true"],check=True)'`, ""},
	{"python with temporary files", "python3", `python3 -c 'import tempfile;tempfile.NamedTemporaryFile().write(b"x")'`, ""},
	{"python with several processes", "python3", `python3 -c '
import multiprocessing as m
if __name__ == "__main__":
    with m.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]'`, noShared},
	{"python in a virtual environment", "python3", `python3 -m venv --without-pip v && v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'`, ""},
	{"make", "make", "printf 'x: y\\n\\techo made >x\\ny:\\n\\ttouch y\\n' >Makefile; make x && grep made x", ""},
	{"a C compiler", "gcc", `printf 'int main(){return 0;}' >x.c; gcc x.c -o x && ./x`, ""},
	{"bash with process substitution", "bash", `bash -c 'diff <(echo a) <(echo a)'`, ""},
	{"flock", "flock", `flock lock true`, ""},
	{"mktemp", "mktemp", `mktemp -d && mktemp`, ""},
	{"a file in /tmp", "sh", `echo x >/tmp/x && cat /tmp/x`, noTemp},
	{"sort and tar of much", "tar", `seq 100000 | sort -R | sort -n | tail -1 && tar czf x.tgz file && tar xzf x.tgz`, ""},
	{"names of users", "getent", `id && getent passwd root`, ""},
	{"a pipe with a name", "mkfifo", `mkfifo p && (echo x >p &) && cat p`, ""},
	{"modes of scripts", "sh", `printf '#!/bin/sh\necho ran\n' >x && chmod +x x && ./x`, ""},
	{"a job in the background", "sh", `sleep 0 & wait && nice -n 5 true`, ""},
}

// TestDailyTools has a verdict for each tool on each rung. A tool that is not installed is left out, and said.
func TestDailyTools(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a minute; not with -short")
	}
	eachRung(t, func(t *testing.T, h Host, rung Rung) {
		s := newScene(t, false)
		t.Cleanup(func() { s.close(t) })
		place, works, all := s.place, 0, 0
		// What this test's own compiler has compiled: an empty cache takes half a minute to fill.
		text, _ := exec.Command("go", "env", "GOCACHE").Output()
		cache := strings.TrimSpace(string(text))
		for _, tool := range tools {
			t.Run(strings.ReplaceAll(tool.name, " ", "-"), func(t *testing.T) {
				for program := range strings.FieldsSeq(tool.needs) {
					if _, err := exec.LookPath(program); err != nil {
						t.Skipf("needs %s", program)
					}
				}
				all++
				env := place.Environ([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=-buildvcs=false"})
				if cache != "" {
					env = append(env, "GOCACHE="+cache)
				}
				policy := Standard(place)
				if cache != "" {
					policy.Write = append(policy.Write, cache)
				}
				out, changed := shellWith(t, policy, h, s.place.Work, tool.line, env)
				switch weak := rung == RungLandlock && tool.landlock != ""; {
				case out.status != 0 && !weak:
					t.Errorf("%d\n%s%s", out.status, out.stdout, out.stderr)
				case out.status == 0 && weak:
					t.Errorf("it works now, although %s", tool.landlock)
				case len(changed) > 0:
					t.Errorf("changed: %q", changed)
				case !weak:
					works++
				}
				s.clean(t)
			})
		}
		t.Logf("%d of %d tools work", works, all)
		if names, err := filepath.Glob(filepath.Join(s.place.Work, ".*")); err != nil || len(names) != 1 {
			t.Errorf("left: %q %v", names, err)
		}
	})
}
