package daemon_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// The test binary plays what an agent's shell runs when this variable has what it is to do.
const playVar = "RNIX_DAEMON_TEST_PLAY"

// play connects to a socket by children that end at once, says their PIDs in a file, and when another file is there asks
// for what only a person may have, over each of the connections.
func play(what string) int {
	verb, rest, _ := strings.Cut(what, " ")
	socket, dir, _ := strings.Cut(rest, " ")
	if verb == "connect" {
		if err := unix.Connect(3, &unix.SockaddrUnix{Name: socket}); err != nil {
			return 1
		}
		return 0
	}
	if verb == "listen" {
		return listenInstead(socket, dir)
	}
	var conns []*os.File
	var pids strings.Builder
	for range 4 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return 1
		}
		conn := os.NewFile(uintptr(fd), "connection")
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), playVar+"=connect "+socket), []*os.File{conn}
		if err := cmd.Run(); err != nil {
			return 1
		}
		conns = append(conns, conn)
		fmt.Fprintln(&pids, cmd.Process.Pid)
	}
	if err := os.WriteFile(filepath.Join(dir, "pids.new"), []byte(pids.String()), 0o600); err != nil {
		return 1
	}
	if err := os.Rename(filepath.Join(dir, "pids.new"), filepath.Join(dir, "pids")); err != nil {
		return 1
	}
	for ; ; <-time.After(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(dir, "go")); err == nil {
			break
		}
	}
	body := `{"target":"` + os.Getenv("RNIX_UUID") + `","tokens":1000}`
	for _, conn := range conns {
		req, err := http.NewRequest(http.MethodPost, "http://x/"+ipc.Version+"/"+ipc.AddBudget.Name, bytes.NewReader([]byte(body)))
		if err == nil {
			err = req.Write(conn)
		}
		var resp *http.Response
		if err == nil {
			resp, err = http.ReadResponse(bufio.NewReader(conn), req)
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		answer, _ := io.ReadAll(resp.Body)
		fmt.Println(string(bytes.TrimSpace(answer)))
	}
	return 0
}

// playing starts a daemon and an agent whose shell runs this test binary as play of a verb, on the daemon's socket and in a directory.
func playing(t *testing.T, verb string) (s *testenv.System, p ipc.SpawnResponse, socket, dir string) {
	t.Helper()
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	var command string
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", fmt.Sprintf(`{"command":%q}`, command))
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	sock, _ := filepath.Glob(filepath.Join(s.Dir, "rnix", "*.sock"))
	command = playVar + "='" + verb + " " + sock[0] + " " + dir + "' " + program
	budget := 100_000
	p = s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	return s, p, sock[0], dir
}

// An agent's shell keeps connections that its children have made, waits until the PIDs of these are others', and asks over them for
// what only a person may have.
func TestAnAgentIsNobodyElseByTheNumberOfAProcess(t *testing.T) { // T1
	last, err := os.OpenFile("/proc/sys/kernel/ns_last_pid", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("needs to choose the PIDs of processes: ", err)
	}
	defer last.Close()
	s, p, _, dir := playing(t, "keep")
	var pids []string
	until(t, "the connections are made", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "pids"))
		pids = strings.Fields(string(b))
		return err == nil
	})
	taken := 0
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 { // others take PIDs, too
			if _, err := last.WriteAt([]byte(strconv.Itoa(pid-1)), 0); err != nil {
				t.Skip("needs to choose the PIDs of processes: ", err)
			}
			cmd := exec.Command("sleep", "1000")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			if cmd.Process.Pid == pid {
				taken++
				break
			}
		}
	}
	if taken == 0 {
		t.Skip("needs PIDs that nobody else takes")
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := s.Wait(p.PID)
	if strings.Contains(w.Result, `"ok":true`) || strings.Count(w.Result, `"code":"PERMISSION"`) != len(pids) {
		t.Errorf("with %d of %d PIDs of others: %s", taken, len(pids), w.Result)
	}
}
