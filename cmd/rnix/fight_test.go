package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/cli"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
)

var fightSeed = flag.Uint64("fight.seed", 1, "the seed of the fight of two daemons")

// fightTime is how long two daemons fight: RNIX_FIGHT, such as 60s.
func fightTime(t *testing.T) time.Duration {
	text := os.Getenv("RNIX_FIGHT")
	if text == "" {
		return soak.Pick(t, "length of the fight", 8*time.Second, time.Minute)
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	fightSession = "S-1"
	fightTTL     = 2 * time.Second // of the lease
)

// field is where daemons fight: a control plane in a process of its own, which both reach over bad wires, a model for both, and
// a directory in which the agents of both write.
type field struct {
	t     *testing.T
	dir   string
	work  string
	acts  string // a file: one line for each thing that an agent did
	token string
	api   string

	mu sync.Mutex
	// +checklocks:mu
	addr  string    // of the control plane
	plane *exec.Cmd // +checklocks:mu
	// +checklocks:mu
	down int // how often it was killed
	// +checklocks:mu
	had []string // whose processes have had the session, as they ended
}

// fighter is a daemon, and who starts processes on it.
type fighter struct {
	*field
	name string
	wire *badWire
	env  []string
	data string

	mu sync.Mutex
	// +checklocks:mu
	stops []span // when the daemon stood still
	// +checklocks:mu
	ends map[int]int // exit codes of rnix run
	// +checklocks:mu
	failed []string // what runs said that ended as none should
}

type span struct{ from, to time.Time }

func newField(t *testing.T) *field {
	dir, err := os.MkdirTemp("", "rnix") // a short name: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	f := &field{t: t, dir: dir, work: filepath.Join(dir, "work"), acts: filepath.Join(dir, "acts"), token: "secret-token-of-a-fight"}
	for _, d := range []string{f.work, filepath.Join(dir, "cp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cp", "token"), []byte(f.token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, f.api = llmtest.NewAPI(t, f.model)
	f.serve("127.0.0.1:0")
	t.Cleanup(func() { f.kill(syscall.SIGTERM) })
	return f
}

// serve starts the control plane.
func (f *field) serve(listen string) {
	c := exec.Command("rnix", "serve", "--control-plane", "--listen", listen, "--data", filepath.Join(f.dir, "cp"), "--ttl", fightTTL.String(), "--json")
	c.Env = []string{"HOME=" + f.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0", testenv.SandboxOff}
	var talk bytes.Buffer
	c.Stderr = &talk
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		f.t.Error(err)
		return
	}
	var ready cli.ControlPlaneReady
	line, _ := bufio.NewReader(out).ReadBytes('\n') // ends with the process
	if err := json.Unmarshal(line, &ready); err != nil {
		_ = c.Wait()
		f.t.Errorf("the control plane does not start: %q %s", line, talk.String())
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plane, f.addr = c, strings.TrimPrefix(ready.URL, "http://")
}

// kill ends the control plane and waits until it is gone.
func (f *field) kill(sig syscall.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.plane != nil {
		_ = f.plane.Process.Signal(sig)
		_ = f.plane.Wait()
		f.plane = nil
	}
}

// crash ends the control plane as a power failure of its process would, and starts it again.
func (f *field) crash() {
	f.kill(syscall.SIGKILL)
	f.mu.Lock()
	f.down++
	addr := f.addr
	f.mu.Unlock()
	f.serve(addr)
}

func (f *field) address() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addr
}

var taskOf = regexp.MustCompile(`task ([ab]-\d+) of (\d+) steps`)

// model plays all agents: each says which task it is and how far, and does something real, so many times as it was told.
func (f *field) model(r llmtest.Request) llmtest.Reply {
	m := taskOf.FindStringSubmatch(r.Messages[0].Text)
	if m == nil {
		return llmtest.Reply{Status: 400, Text: "no task"}
	}
	var steps, done int
	fmt.Sscan(m[2], &steps)
	for _, msg := range r.Messages {
		done += len(msg.Results)
	}
	if done >= steps {
		return llmtest.Reply{Text: m[1] + " end", Delay: 20 * time.Millisecond}
	}
	input, _ := json.Marshal(map[string]string{"command": fmt.Sprintf(`echo "%s %d $(date +%%s%%N)" >> %s`, m[1], done, f.acts)})
	return llmtest.Reply{Text: fmt.Sprint(m[1], " ", done), Delay: time.Duration(30+len(r.Body)%70) * time.Millisecond,
		ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: string(input)}}}
}

func newFightDaemon(f *field, name string, seed uint64) *fighter {
	x := &fighter{field: f, name: name, data: filepath.Join(f.dir, name, "data"), ends: map[int]int{}}
	x.wire = newBadWire(f.t, seed, f.address)
	run := filepath.Join(f.dir, name, "run")
	if err := os.MkdirAll(run, 0o700); err != nil {
		f.t.Fatal(err)
	}
	x.env = []string{"HOME=" + filepath.Join(f.dir, name), "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + run, "RNIX_DATA_DIR=" + x.data, "LANG=C.UTF-8", "TERM=dumb",
		"GORACE=atexit_sleep_ms=0", "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + f.api, "RNIX_PLATFORM_URL=http://" + x.wire.l.Addr().String(),
		"RNIX_PLATFORM_TOKEN=" + f.token, "RNIX_PLATFORM_INTERVAL=1s", testenv.SandboxOff} // what agents do is noted outside of their directories
	if out, code := x.rnix("daemon", "start"); code != 0 {
		f.t.Fatalf("daemon start: %s", out)
	}
	f.t.Cleanup(func() {
		x.stand(false)
		if out, code := x.rnix("daemon", "stop"); code != 0 {
			f.t.Errorf("daemon stop: %s", out)
		}
		if log, err := os.ReadFile(filepath.Join(x.data, "log", "daemon.log")); err == nil && (bytes.Contains(log, []byte("panic")) || bytes.Contains(log, []byte("DATA RACE"))) {
			f.t.Errorf("the daemon's log:\n%s", log)
		}
	})
	return x
}

func (x *fighter) rnix(args ...string) (string, int) {
	c := exec.Command("rnix", args...)
	c.Env, c.Dir = x.env, x.work
	out, _ := c.CombinedOutput() // its exit code says all
	return string(out), c.ProcessState.ExitCode()
}

// stand makes the daemon stand still, or go on.
func (x *fighter) stand(still bool) {
	h, held, err := ipc.LockHolder(ipc.DataLock(x.data))
	if err != nil || !held || h.PID <= 1 {
		return
	}
	sig := syscall.SIGCONT
	if still {
		sig = syscall.SIGSTOP
	}
	_ = syscall.Kill(h.PID, sig)
}

// ghost makes the daemon stand still for longer than its lease is good.
func (x *fighter) ghost(d time.Duration) {
	s := span{from: time.Now()}
	x.stand(true)
	<-time.After(d)
	s.to = time.Now()
	x.mu.Lock()
	x.stops = append(x.stops, s)
	x.mu.Unlock()
	x.stand(false)
}

// fight takes the session again and again.
func (x *fighter) fight(ctx context.Context, r *rand.Rand) {
	for n := 1; ctx.Err() == nil; n++ {
		out, code := x.rnix("run", "--session", fightSession, "--provider", "anthropic", "--model", "fake", "--quiet",
			fmt.Sprintf("task %s-%d of %d steps", x.name, n, 1+r.IntN(12)))
		x.mu.Lock()
		x.ends[code]++
		switch code {
		case 0, cli.ExitLostOwnership:
			x.field.mine(x.name)
		default:
			x.failed = append(x.failed, fmt.Sprintf("exit code %d: %s", code, out))
		}
		x.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(r.Float64() * float64(200*time.Millisecond))):
		}
	}
}

// mine notes that a process of a daemon has had the session.
func (f *field) mine(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.had = append(f.had, name)
}

// enough reports whether a fight of so long was one: on a busy machine it takes longer.
func (f *field) enough(long time.Duration) bool {
	done, _ := os.ReadFile(f.acts) // not there before the first
	f.mu.Lock()
	defer f.mu.Unlock()
	changes := 0
	for i := range f.had[min(1, len(f.had)):] {
		if f.had[i] != f.had[i+1] {
			changes++
		}
	}
	return changes >= 3 && len(f.had) >= int(long/(5*time.Second)) && bytes.Count(done, []byte("\n")) >= 10
}

// rage lets the fight go on for so long, and for two minutes more if it was none until then.
func (f *field) rage(long time.Duration) {
	<-time.After(long)
	for end := time.Now().Add(2 * time.Minute); !f.enough(long) && time.Now().Before(end); {
		<-time.After(100 * time.Millisecond)
	}
}

// get reads from the control plane, past the bad wires.
func (f *field) get(path string, answer any) error {
	req, err := http.NewRequest(http.MethodGet, "http://"+f.address()+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != 200 {
		err = fmt.Errorf("GET %s: %s %s", path, resp.Status, b)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, answer)
}

func (f *field) ask(path string, answer any) {
	f.t.Helper()
	if err := f.get(path, answer); err != nil {
		f.t.Fatal(err)
	}
}

// owner returns whose process has the session now; nil if that cannot be said.
func (f *field) owner(both []*fighter) *fighter {
	var st struct{ Ownership struct{ Owner string } }
	if f.get("/api/sessions/"+fightSession, &st) != nil {
		return nil
	}
	end := st.Ownership.Owner[strings.LastIndex(st.Ownership.Owner, "-")+1:]
	for _, x := range both {
		if found, _ := filepath.Glob(filepath.Join(x.data, "steps", "*"+end)); end != "" && len(found) > 0 {
			return x
		}
	}
	return nil
}

// faults cuts wires, stops daemons and crashes the control plane until ctx ends; then all is in peace.
func (f *field) faults(ctx context.Context, both []*fighter, r *rand.Rand) {
	var beside sync.WaitGroup
	some := func(least, most time.Duration) time.Duration {
		return least + time.Duration(r.Float64()*float64(most-least))
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(some(300*time.Millisecond, 2*time.Second)):
		}
		x := both[r.IntN(2)]
		if owner := f.owner(both); owner != nil && r.IntN(4) > 0 { // it has most to lose
			x = owner
		}
		switch k := r.IntN(10); {
		case k < 4:
			x.wire.Cut(some(200*time.Millisecond, 3*time.Second))
		case k == 4: // neither reaches it
			d := some(time.Second, 3*time.Second)
			for _, x := range both {
				beside.Go(func() { x.wire.Cut(d) })
			}
			beside.Wait()
		case k < 8:
			x.ghost(some(fightTTL+200*time.Millisecond, fightTTL+1500*time.Millisecond))
		default:
			f.crash()
		}
	}
	for _, x := range both {
		x.wire.Heal()
	}
}

// TestTwoRealDaemonsFightAndTheSessionHasOneOwnerAtATime lets two daemons run processes of one session over and over, for
// RNIX_FIGHT (15 s), with a control plane in a process of its own, while requests are lost, late, doubled and cut, networks are
// down, daemons stand still for longer than a lease and the control plane is killed.
func TestTwoRealDaemonsFightAndTheSessionHasOneOwnerAtATime(t *testing.T) {
	t.Parallel()
	long := fightTime(t)
	f := newField(t)
	r := rand.New(rand.NewPCG(*fightSeed, 1))
	both := []*fighter{newFightDaemon(f, "a", 2**fightSeed), newFightDaemon(f, "b", 2**fightSeed+1)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { f.rage(long); cancel() })
	for _, x := range both {
		own := rand.New(rand.NewPCG(*fightSeed, uint64(len(x.name)+int(x.name[0]))))
		running.Go(func() { x.fight(ctx, own) })
	}
	f.faults(ctx, both, r)
	running.Wait()
	v := newVerdict(f, both)
	for end := time.Now().Add(time.Minute); len(v.missing(false)) > 0 && time.Now().Before(end); { // a journal is written a moment after the record
		v = newVerdict(f, both)
	}
	v.nothingIsLost(false)
	pending := v.figures["pending"]
	f.settled(both)
	v = newVerdict(f, both)
	v.nothingIsLost(true)
	v.figures["pending when the faults ended"] = pending
	v.oneOwner()
	v.acts()
	v.report(both, long)
}
