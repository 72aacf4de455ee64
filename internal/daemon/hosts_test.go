package daemon_test

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// Tools that fetch something find the proxy of their box by themselves, and reach by it the host that is allowed. Names are known to the daemon alone.
func TestRealToolsReachAllowedHosts(t *testing.T) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("needs bwrap")
	}
	var mu sync.Mutex
	seen := map[string]bool{} // names of hosts
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[strings.TrimSuffix(r.Host, ":443")] = true
		mu.Unlock()
		http.Error(w, "there is nothing", http.StatusNotFound)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	user, _ := os.UserHomeDir()
	rustup := cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(user, ".rustup")) // where the cargo of rustup is
	tools := map[string]string{
		"curl":    "curl -sS http://%s/x",
		"git":     "git ls-remote http://%s/x",
		"npm":     "npm view nothing --registry http://%s/ --fetch-retries 0",
		"pip3":    "pip3 download --no-input --retries 0 --disable-pip-version-check --index-url http://%[1]s/simple --trusted-host %[1]s nothing",
		"go":      "cd $TMPDIR && GOFLAGS=-mod=mod GOPROXY=http://%s GONOSUMDB=* GOTOOLCHAIN=local go list -m example.com/nothing@v1.0.0",
		"python3": "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://%s/x\")'",
		"cargo":   "cd $TMPDIR && export RUSTUP_HOME=" + rustup + " CARGO_HOME=$PWD/cargo CARGO_REGISTRIES_MINE_INDEX=sparse+http://%s/ CARGO_NET_RETRY=0 && cargo new -q fetches && cd fetches && echo 'nothing = { version = \"1\", registry = \"mine\" }' >>Cargo.toml && cargo fetch",
		"apt-get": "cd $TMPDIR && mkdir -p lists/partial cache/archives/partial && echo 'deb [trusted=yes] http://%s/debian stable main' >sources.list && apt-get -o Dir::State::Lists=$PWD/lists -o Dir::Cache=$PWD/cache -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=- -o APT::Sandbox::User= -o Acquire::Retries=0 update",
		"wget":    "wget -q -t 1 http://%s/x",
	}
	var network, line []string
	var names []string
	for tool, how := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("needs %s, which is not tried", tool)
			continue
		}
		name := tool + ".test"
		names, network = append(names, name), append(network, name+":80="+plain.Listener.Addr().String())
		line = append(line, "("+fmt.Sprintf(how, name)+")")
	}
	if _, err := exec.LookPath("curl"); err == nil {
		names, network = append(names, "secure.test"), append(network, "secure.test:443="+secure.Listener.Addr().String())
		line = append(line, "curl -sSk https://secure.test/x", "curl -sSk https://other.test/x")
	}
	s := testenv.New(t, testenv.SandboxOn, testenv.NetEnv+"="+strings.Join(network, " "))
	p := s.Spawn(ipc.SpawnRequest{Intent: "run " + strings.Join(line, "; ") + "; true", Hosts: names, ProcSpec: types.ProcSpec{Provider: "offline"}})
	w := s.Wait(p.PID)
	for _, name := range names {
		if !seen[name] {
			t.Errorf("%s was not reached", name)
		}
	}
	if seen["other.test"] || !strings.Contains(w.Result, "the sandbox does not let commands reach other.test:443, which is not among the allowed hosts: ") {
		t.Error("another host is not refused")
	}
	if t.Failed() {
		t.Log(w.Result)
	}
}
