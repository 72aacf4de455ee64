package workspace

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

// killedIn is the variable that makes of this program one which takes snapshots until it is killed.
const killedIn = "RNIX_TEST_TAKE_IN"

var killedID = types.UUID{0x01, 0x90, 6: 0x70, 8: 0x80, 15: 0xa}

func init() {
	if dir := os.Getenv(killedIn); dir != "" {
		takeUntilKilled(dir)
		os.Exit(1)
	}
}

// takeUntilKilled changes the files of a directory and takes a snapshot of them, again and again. It says
// which step is taken. It returns when something fails.
func takeUntilKilled(dir string) {
	k := New(Options{Dir: filepath.Join(dir, "data"), Env: []string{}})
	all, err := k.List(context.Background(), killedID)
	next := len(all) + 1
	for _, s := range all {
		next = max(next, s.Step+1)
	}
	for n := next; err == nil; n++ {
		err = writeWork(filepath.Join(dir, "work"), n)
		var s Snapshot
		if err == nil {
			s, err = k.Take(context.Background(), filepath.Join(dir, "work"), killedID, n)
		}
		if err == nil && (!s.Changed || s.ID == "") {
			err = fmt.Errorf("step %d was not kept: %s", n, s.Limited)
		}
		if err == nil {
			fmt.Println("taken", n)
		}
	}
	fmt.Println("error", err)
}

func workOf(n int) map[string]string {
	return map[string]string{
		"number":    fmt.Sprint(n),
		"same":      "as ever",
		"deep/text": strings.Repeat(fmt.Sprintf("line of %d\n", n), 40),
		"deep/odd":  fmt.Sprint(n % 2),
	}
}

func writeWork(dir string, n int) error {
	for name, text := range workOf(n) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// A program that takes copies is killed again and again, at any moment: what it has said it has taken can be
// restored, so can all else that is recorded, and the next one goes on.
func TestKilledWhileItTakesCopiesLosesNoneThatIsRecorded(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := real(t, t.TempDir())
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r, said := rand.New(rand.NewPCG(seed, 0)), map[int]bool{}
	for range 12 {
		ctx, kill := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = []string{killedIn + "=" + dir}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for left := 1 + r.IntN(4); left > 0 && lines.Scan(); left-- {
			said[taken(t, lines.Text())] = true
		}

		timer := time.AfterFunc(time.Duration(r.IntN(3000))*time.Microsecond, kill)
		for lines.Scan() {
			said[taken(t, lines.Text())] = true
		}
		_ = cmd.Wait() // it was killed
		timer.Stop()
		kill()
	}
	k := New(Options{Dir: filepath.Join(dir, "data"), Env: []string{}})
	all, err := k.List(t.Context(), killedID)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Rescue {
			continue
		}
		delete(said, s.Step)
		if _, err := k.Restore(t.Context(), s.Ref, filepath.Join(dir, "work"), RestoreOpts{Overwrite: true}); err != nil {
			t.Fatalf("step %d: %v", s.Step, err)
		}
		for name, want := range workOf(s.Step) {
			if b, err := os.ReadFile(filepath.Join(dir, "work", name)); err != nil || string(b) != want {
				t.Fatalf("step %d: %s is %q, %v", s.Step, name, b, err)
			}
		}
	}
	if len(said) > 0 || len(all) < 12 {
		t.Errorf("these steps were taken and are not recorded: %v; %d are", said, len(all))
	}
}

func taken(t *testing.T, line string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(line, "taken %d", &n); err != nil {
		t.Fatalf("it says %q", line)
	}
	return n
}

// A power cut can leave a part of an object, which was not synced: the next snapshot with the same file
// writes it whole again.
func TestTornObjectIsWrittenAgain(t *testing.T) {
	t.Parallel()
	o := objects{t.TempDir()}
	data := bytes.Repeat([]byte("some text that can be packed "), 100)
	id, err := o.putBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []int64{0, 1, 20} {
		if err := os.Truncate(o.path(id), left); err != nil {
			t.Fatal(err)
		}
		if again, err := o.putBytes(data); err != nil || again != id {
			t.Fatal(again, err)
		}
		r, err := o.open(id)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("after %d bytes were left: %d bytes, %v", left, len(got), err)
		}
		r.Close()
	}
}
