package daemon_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// stock is a data directory with histories that come and go, and what each of them must have.
type stock struct {
	*project
	rng   *rand.Rand
	all   map[types.UUID]*stored
	order []types.UUID // in which they were made
	did   []string
}

// stored is a history of a stock.
type stored struct {
	dir   string            // its own
	files map[string]string // what is in dir, and what git says of it
	state string            // dead, archived, "" = deleted
	old   bool              // it would go with the next collection
}

// portray returns what is in a directory, and what git says of it if it is a git work tree.
func (k *stock) portray(dir string) map[string]string {
	k.t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".git" {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err == nil && rel != "." {
			out[rel] = info.Mode().String()
		}
		if err == nil && info.Mode().IsRegular() {
			var text []byte
			text, err = os.ReadFile(p)
			out[rel] += " " + string(text)
		}
		return err
	}); err != nil {
		k.t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		for _, args := range []string{"status --porcelain=v2 --branch --untracked-files=all --ignored", "ls-files -s -v"} {
			out[args] = k.git(dir, strings.Fields("--no-optional-locks "+args)...)
		}
	}
	return out
}

// pick returns one of the histories that are in a state.
func (k *stock) pick(state string) (types.UUID, bool) {
	var some []types.UUID
	for _, id := range k.order {
		if k.all[id].state == state {
			some = append(some, id)
		}
	}
	if len(some) == 0 {
		return types.UUID{}, false
	}
	return some[k.rng.IntN(len(some))], true
}

// begin starts a process with its own git work tree, or forks one that there is, and waits for its end.
func (k *stock) begin() {
	k.t.Helper()
	origin, any := k.pick("dead")
	var pid types.PID
	var id types.UUID
	var dir string
	if !any || k.rng.IntN(3) == 0 {
		p := k.s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: k.dir, Worktree: &ipc.WorktreeRequest{}})
		pid, id, dir = p.PID, p.UUID, p.Worktree.Dir
	} else {
		f := forkOf(k.t, k.s, origin, nil)
		pid, id, dir = f.PID, f.UUID, filepath.Join(k.s.Data, "workspaces", f.UUID.String())
		k.note("%s is a fork of %s", id, origin)
	}
	k.s.Wait(pid)
	k.all[id] = &stored{dir: dir, state: "dead"}
	k.order = append(k.order, id)
	k.edit(id)
	k.note("%s was begun in %s", id, dir)
}

// edit changes what is in a directory as a person would who works there.
func (k *stock) edit(id types.UUID) {
	k.t.Helper()
	h := k.all[id]
	n := k.rng.IntN(1000)
	for range 2 {
		switch k.rng.IntN(7) {
		case 0:
			write(k.t, filepath.Join(h.dir, fmt.Sprint("new-", n)), "new")
		case 1:
			write(k.t, filepath.Join(h.dir, "README.md"), fmt.Sprint("changed ", n))
		case 2:
			write(k.t, filepath.Join(h.dir, "x.log"), fmt.Sprint("ignored ", n))
		case 3:
			write(k.t, filepath.Join(h.dir, "staged"), fmt.Sprint("staged ", n))
			k.git(h.dir, "add", "staged")
		case 4:
			write(k.t, filepath.Join(h.dir, "README.md"), fmt.Sprint("committed ", n))
			k.git(h.dir, "commit", "--allow-empty", "-qam", "by hand") // a second time it has nothing to commit
		case 5:
			k.git(h.dir, "checkout", "-q", "--detach")
		case 6:
			k.git(h.dir, "sparse-checkout", "set", "in")
		}
	}
	h.files = k.portray(h.dir)
}

func (k *stock) note(format string, args ...any) { k.did = append(k.did, fmt.Sprintf(format, args...)) }

// ops are what is done with a history that is in a state, over the socket. Each may be cut off.
var ops = []struct {
	name, state string
	do          func(k *stock, id types.UUID) error
}{
	{"archive", "dead", func(k *stock, _ types.UUID) error {
		_, err := ipc.Call(k.t.Context(), k.s.Client, ipc.GC, ipc.GCRequest{})
		return err
	}},
	{"gc --delete", "dead", func(k *stock, _ types.UUID) error {
		_, err := ipc.Call(k.t.Context(), k.s.Client, ipc.GC, ipc.GCRequest{Delete: true})
		return err
	}},
	{"unarchive", "archived", func(k *stock, id types.UUID) error {
		_, err := ipc.Call(k.t.Context(), k.s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: id.String()})
		return err
	}},
	{"rm", "archived", remove},
	{"rm", "dead", remove},
	{"resume", "dead", func(k *stock, id types.UUID) error {
		r, err := ipc.Call(k.t.Context(), k.s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), NewInput: "again", Env: k.s.Env})
		if err == nil {
			k.s.Wait(r.PID)
		}
		return err
	}},
}

func remove(k *stock, id types.UUID) error {
	_, err := ipc.Call(k.t.Context(), k.s.Client, ipc.Remove, ipc.RemoveRequest{Target: id.String()})
	return err
}

// weights say how often each of ops is tried, in their order.
var weights = []int{6, 3, 4, 3, 3, 2}

// step does one of ops, or begins a history; now and then the daemon is killed in the middle.
func (k *stock) step() {
	k.t.Helper()
	n := k.rng.IntN(24)
	for i, w := range weights {
		if n -= w; n >= 0 {
			continue
		}
		id, any := k.pick(ops[i].state)
		if !any {
			break
		}
		k.run(i, id)
		return
	}
	k.begin()
}

func (k *stock) run(i int, id types.UUID) {
	k.t.Helper()
	op, h, asked := ops[i], k.all[id], id
	if i < 2 {
		if _, err := ipc.Call(k.t.Context(), k.s.Client, ipc.Keep, ipc.KeepRequest{Target: id.String(), Off: true}); err != nil {
			k.t.Fatal(err)
		}
		age(k.t, k.s, id)
		h.old = true
	}
	if op.name == "resume" || k.rng.IntN(3) > 0 {
		if err := op.do(k, id); err != nil {
			k.t.Errorf("%s %s: %v", op.name, id, err)
		}
		k.note("%s %s", op.name, id)
		switch op.name {
		case "resume":
			h.old = false
			h.files = k.portray(h.dir)
		case "archive": // and those that an earlier kill has left there
			for id, h := range k.all {
				if _, err := os.Lstat(h.dir); (id == asked || h.state == "archived") && err == nil {
					k.t.Errorf("%s is archived, and its directory is there", id)
				}
			}
		}
	} else {
		over := make(chan struct{})
		go func() { // ends with the daemon
			defer close(over)
			_ = op.do(k, id)
		}()
		after := time.Duration(k.rng.IntN(400)) * time.Millisecond
		<-time.After(after)
		kill(k.t, k.s)
		<-over
		k.s.Start()
		k.s.Settle()
		k.note("%s %s, killed after %v", op.name, id, after)
	}
	want := map[string]string{"archive": "archived", "unarchive": "dead", "resume": "dead"}[op.name]
	for other, h := range k.all { // a kill leaves some old ones, which go with the next that go
		was := h.state
		if h.state = shownAs(k.t, k.s, other); h.state != was && (h.state != want || other != id && !h.old) {
			k.t.Errorf("%s %s: %s was %q and is %q", op.name, id, other, was, h.state)
		}
	}
}

// check compares what there is with what the histories need.
func (k *stock) check() {
	k.t.Helper()
	dirs := map[string]bool{k.dir: true}
	branches := map[string]bool{}
	for id, h := range k.all {
		_, err := os.Lstat(h.dir)
		there := err == nil
		switch {
		case there && h.state == "", !there && h.state == "dead":
			k.t.Errorf("%s is %q, and its directory is there: %t", id, h.state, there)
		case there:
			if diff := cmp.Diff(h.files, k.portray(h.dir)); diff != "" {
				k.t.Errorf("the directory of %s, which is %s: %s", id, h.state, diff)
			}
			dirs[h.dir] = true
		}
		rescues, err := filepath.Glob(filepath.Join(k.s.Data, "snapshots/history", id.String(), "rescue-*.json"))
		away, aerr := os.Lstat(filepath.Join(k.s.Data, "snapshots/stowed", id.String()))
		if err = errors.Join(err); h.state == "archived" {
			if (aerr == nil) == there {
				k.t.Errorf("%s is archived, its directory is there: %t, and put away: %v", id, there, away)
			}
		} else if aerr == nil || h.state == "dead" && len(rescues) > 0 || err != nil {
			k.t.Errorf("%s is %q, and these are left: %v %v %v", id, h.state, away, rescues, err)
		}
		if steps, _ := filepath.Glob(filepath.Join(k.s.Data, "snapshots/history", id.String(), "0*.json")); h.state == "" && len(steps) > 0 {
			k.t.Errorf("%s is deleted, and these snapshots are left: %v", id, steps)
		}
		if h.state != "" {
			branches[id.String()] = true
		}
	}
	for l := range strings.Lines(k.git(k.dir, "worktree", "list", "--porcelain") + "\n") {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(l), "worktree "); ok && !dirs[dir] {
			k.t.Errorf("the repository knows the work tree %s", dir)
		}
	}
	for _, of := range []string{"worktrees", "workspaces"} {
		entries, _ := os.ReadDir(filepath.Join(k.s.Data, of)) // there may be none yet
		for _, e := range entries {
			if !branches[e.Name()] {
				k.t.Errorf("%s/%s is left", of, e.Name())
			}
		}
	}
	k.branches()
	k.room()
}

// branches looks for branches that belong to no history and hold nothing.
func (k *stock) branches() {
	k.t.Helper()
	for b := range strings.Lines(k.git(k.dir, "for-each-ref", "--format=%(refname:short)", "refs/heads/rnix/") + "\n") {
		b = strings.TrimSpace(b)
		owned := b == ""
		for id, h := range k.all { // such as rnix/01a212c8-9317-17b317d9adf2
			s := id.String()
			owned = owned || h.state != "" && strings.Contains(b, s[:13]+"-"+s[28:])
		}
		if !owned && k.git(k.dir, "rev-list", "--count", b, "--not", "--exclude="+b, "--branches") == "0" {
			k.t.Errorf("the branch %s is of no history, and holds nothing", b)
		}
	}
}

// room compares what du says with the files that there are.
func (k *stock) room() {
	k.t.Helper()
	until(k.t, "du and the data directory agree", func() bool { // what is told of a process at its end may be written just now
		r, err := ipc.Call(k.t.Context(), k.s.Client, ipc.DU, ipc.DURequest{})
		if err != nil || len(r.Warnings) > 0 {
			return false
		}
		var there int64
		err = filepath.WalkDir(k.s.Data, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				var info fs.FileInfo
				if info, err = d.Info(); err == nil {
					there += info.Size()
				}
			}
			return err
		})
		sum := r.Shared.Total
		for _, h := range r.Histories {
			sum += h.Total
		}
		return err == nil && sum == r.Total.Total && r.Total.Total == there
	})
}

// In whatever order histories are archived, put back, resumed, forked, collected and deleted, and whenever the daemon is killed meanwhile: each that is there has
// its directory as it was left, each that is archived can have it back, and nothing is left that is of no history.
func TestDirectoriesFollowTheirHistoriesIntoArchivesAndBack(t *testing.T) { // B5
	rounds := soak.Number(t, "RNIX_ARCHIVES_ROUNDS", "data directories", 1, 20)
	steps := soak.Number(t, "RNIX_ARCHIVES_STEPS", "operations on each", 8, 120)
	seed := uint64(soak.Number(t, "RNIX_ARCHIVES_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	for n := range rounds {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := &worker{steps: 2, call: func(n int) llmtest.Reply {
				return tool("write_file", fmt.Sprintf(`{"path":"file-%d","content":"%d"}`, n, n))
			}}
			_, url := llmtest.NewAPI(t, w.reply)
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			k := &stock{project: newProject(t, s), rng: rand.New(rand.NewPCG(seed, uint64(n))), all: map[types.UUID]*stored{}}
			sub := filepath.Join(s.Work, "sub")
			write(t, filepath.Join(sub, "s"), "s")
			k.git(sub, "init", "-q")
			k.git(sub, "add", "-A")
			k.git(sub, "commit", "-qm", "sub")
			write(t, filepath.Join(k.dir, "in/f"), "f")
			k.git(k.dir, "submodule", "--quiet", "add", sub, "sub")
			k.git(k.dir, "add", "-A")
			k.git(k.dir, "commit", "-qm", "second")
			for range 3 {
				k.begin()
			}
			for range steps {
				k.step()
				if k.check(); t.Failed() {
					break
				}
			}
			for _, id := range slices.Collect(maps.Keys(k.all)) {
				if k.all[id].state == "archived" {
					k.run(2, id)
				}
			}
			k.check()
			t.Logf("seed %d:\n%s", seed, strings.Join(k.did, "\n"))
		})
	}
}
