//go:build amd64 || arm64

package sandbox

import (
	"cmp"
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
	// unix says that it needs Unix sockets, which no setting gives: it fails as commands run, and works with bubblewrap where they are given.
	unix bool
}

const (
	noLoopback = "there is no loopback without an open network"
	noShared   = "/dev/shm is shared with other programs"
	noTemp     = "/tmp is shared with other programs"
)

// npmCi installs from a lock file what is in the cache: a package that is packed here, so that nothing is fetched.
const npmCi = `mkdir dep && printf '{"name":"dep","version":"1.0.0"}' >dep/package.json && echo 'module.exports="installed"' >dep/index.js &&
npm pack -s ./dep && npm cache add ./dep-1.0.0.tgz && sum=$(node -p '"sha512-"+require("crypto").createHash("sha512").update(fs.readFileSync("dep-1.0.0.tgz")).digest("base64")') &&
printf '{"name":"x","version":"1.0.0","dependencies":{"dep":"1.0.0"}}' >package.json &&
printf '{"name":"x","version":"1.0.0","lockfileVersion":3,"packages":{"":{"name":"x","version":"1.0.0","dependencies":{"dep":"1.0.0"}},"node_modules/dep":{"version":"1.0.0","resolved":"https://registry.npmjs.org/dep/-/dep-1.0.0.tgz","integrity":"%s"}}}' "$sum" >package-lock.json &&
rm -rf dep dep-1.0.0.tgz && npm ci --offline --no-audit --no-fund && node -p 'require("dep")' | grep installed`

// browse has Chromium draw a page of a server on the loopback. --no-sandbox is its own sandbox, which needs namespaces.
const browse = `cat >browse.js <<'END'
const s = require("http").createServer((q, r) => r.end("<p id=x></p><script>x.textContent='dr'+'awn'</script>")).listen(0, "127.0.0.1", () => {
  const p = require("child_process").spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + process.env.TMPDIR + "/chromium", "--dump-dom", "http://127.0.0.1:" + s.address().port], {stdio: ["ignore", "pipe", "inherit"]});
  p.stdout.pipe(process.stdout);
  p.on("exit", (code) => { s.close(); s.closeAllConnections(); process.exitCode = code ?? 1; });
});
END
node browse.js >page && grep '>drawn<' page`

var tools = []tool{
	{"git commit, branch, stash", "git", `echo a >>file && git add . && git commit -qm second && git branch b && git checkout -q b && echo c >>file && git stash -q && git stash pop -q && git log --oneline | grep second`, "", false},
	{"git grep and diff", "git", `echo z >>file; git diff --stat | grep file && git grep text`, "", false},
	{"go build and test", "go", `printf 'module x\ngo 1.26\n' >go.mod; printf 'package x\nimport "testing"\nfunc TestX(t *testing.T) { t.TempDir() }\n' >x_test.go; printf 'package x\n' >x.go; GOFLAGS=-mod=mod GOTOOLCHAIN=local go build ./... && GOTOOLCHAIN=local go test ./...`, "", false},
	{"go test with a server", "go", `printf 'module x\ngo 1.26\n' >go.mod; printf 'package x\nimport ("testing"; "net/http/httptest"; "net/http")\nfunc TestX(t *testing.T) { s := httptest.NewServer(nil); defer s.Close(); if _, err := http.Get(s.URL); err != nil { t.Fatal(err) } }\n' >x_test.go; GOTOOLCHAIN=local go test ./...`, noLoopback, false},
	{"node with a child", "node", `node -e 'require("child_process").execSync("echo child",{stdio:"inherit"})' | grep child`, "", false},
	{"node with a worker", "node", `node -e 'const {Worker}=require("worker_threads");new Worker("console.log(1)",{eval:true})' | grep 1`, "", false},
	{"a server and its client in node", "node", `node -e 'const h=require("http");const s=h.createServer((q,r)=>r.end("served")).listen(0,"127.0.0.1",()=>h.get({port:s.address().port},r=>{r.pipe(process.stdout);r.on("end",()=>s.close())}))' | grep served`, noLoopback, false},
	{"npm run", "npm", `printf '{"name":"x","scripts":{"go":"echo ran"}}' >package.json; npm run -s go | grep ran`, "", false},
	{"npm ci from a cache", "npm node", npmCi, "", false},
	{"Chromium without a window", "chromium node", browse, noLoopback, true},
	{"python with a process", "python3", `python3 -c 'import subprocess;subprocess.run(["true"],check=True)'`, "", false},
	{"python with temporary files", "python3", `python3 -c 'import tempfile;tempfile.NamedTemporaryFile().write(b"x")'`, "", false},
	{"python with several processes", "python3", `python3 -c '
import multiprocessing as m
if __name__ == "__main__":
    with m.Pool(2) as p: assert p.map(abs, [-1, -2]) == [1, 2]'`, noShared, false},
	{"python in a virtual environment", "python3", `python3 -m venv --without-pip v && v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'`, "", false},
	{"make", "make", "printf 'x: y\\n\\techo made >x\\ny:\\n\\ttouch y\\n' >Makefile; make x && grep made x", "", false},
	{"a C compiler", "gcc", `printf 'int main(){return 0;}' >x.c; gcc x.c -o x && ./x`, "", false},
	{"bash with process substitution", "bash", `bash -c 'diff <(echo a) <(echo a)'`, "", false},
	{"flock", "flock", `flock lock true`, "", false},
	{"mktemp", "mktemp", `mktemp -d && mktemp`, "", false},
	{"a file in /tmp", "sh", `echo x >/tmp/x && cat /tmp/x`, noTemp, false},
	{"sort and tar of much", "tar", `seq 100000 | sort -R | sort -n | tail -1 && tar czf x.tgz file && tar xzf x.tgz`, "", false},
	{"names of users", "getent", `id && getent passwd root`, "", false},
	{"a pipe with a name", "mkfifo", `mkfifo p && (echo x >p &) && cat p`, "", false},
	{"modes of scripts", "sh", `printf '#!/bin/sh\necho ran\n' >x && chmod +x x && ./x`, "", false},
	{"a job in the background", "sh", `sleep 0 & wait && nice -n 5 true`, "", false},
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
				weak := rung == RungLandlock && tool.landlock != "" || tool.unix
				if tool.unix && rung == RungBwrap {
					if out.status == 0 {
						t.Error("it works now without Unix sockets")
					}
					s.clean(t)
					policy.Sockets = []string{"/"}
					given, _ := shellWith(t, policy, h, s.place.Work, tool.line, env)
					if given.status != 0 {
						t.Errorf("with Unix sockets: %d\n%s%s", given.status, given.stdout, given.stderr)
					}
				}
				switch {
				case out.status != 0 && !weak:
					t.Errorf("%d\n%s%s", out.status, out.stdout, out.stderr)
				case out.status == 0 && weak:
					t.Errorf("it works now, although %s", cmp.Or(tool.landlock, "it needs Unix sockets"))
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
