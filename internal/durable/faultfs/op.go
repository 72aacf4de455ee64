package faultfs

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"rnix/internal/durable"
)

// DataDir is the directory that an Op finds, and has for itself.
const DataDir = "/data"

// maxProblems ends an exploration: what is broken is mostly broken everywhere.
const maxProblems = 5

// Op is an operation that writes to the disk, with what must hold whatever becomes of it. All of its
// functions are called very often and must not depend on anything but the file system.
type Op struct {
	Name string
	// Prepare makes what is there before; all of it is durable. nil = nothing but DataDir.
	Prepare func(durable.FS) error
	// Run performs the operation. It hands to ack whatever it would tell somebody is done, at the moment
	// when it would; it ends with the first error and then leaves nothing open. It must also be able to
	// run on what Recover has left of an earlier run. Without a fault it always acknowledges as many.
	Run func(fsys durable.FS, ack func(what string)) error
	// Recover does what a start does after a crash.
	Recover func(durable.FS) error
	// Check reports what does not hold after Recover, given what was acknowledged, in order. It may
	// write.
	Check func(fsys durable.FS, acked []string) error
	// Changing has the base names of files that every Recover changes by intention. All others are the
	// same after a second Recover.
	Changing []string
	// Between stands between the functions above, but for Prepare, and the disk: a planted bug. nil = nothing does.
	Between func(durable.FS) durable.FS
}

// Report says what an exploration has done and found.
type Report struct {
	States   int      // that were made
	Distinct int      // of them, that were recovered and checked: the others are the same
	Problems []string // what does not hold, and after what; at most a few
}

// explorer explores one Op.
type explorer struct {
	op    *Op
	ready *FS // after Prepare
	all   []string
	seed  maphash.Seed
	seen  map[uint64]bool
	Report
}

// run is one run of an operation that was recorded.
type run struct {
	past    *Past
	changes []string
	acks    []ack
}

// ack is something that was acknowledged once a number of changes had been made.
type ack struct {
	after int
	what  string
}

// acked returns what had been acknowledged when n changes had been made.
func (r *run) acked(n int) []string {
	var out []string
	for _, a := range r.acks {
		if a.after <= n {
			out = append(out, a.what)
		}
	}
	return out
}

func (op *Op) explorer() *explorer {
	x := &explorer{op: op, ready: New(DataDir), seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	if op.Prepare != nil {
		if err := op.Prepare(x.ready); err != nil {
			x.problem("Prepare", "%v", err)
		}
	}
	x.ready.Settle()
	return x
}

// record runs the operation without a fault.
func (x *explorer) record() *run {
	fsys := x.ready.Clone()
	r := &run{past: fsys.Record()}
	err := x.guard(func() error {
		return x.op.Run(x.disk(fsys), func(what string) {
			r.acks = append(r.acks, ack{len(r.past.Changes()) - 1, what})
			x.all = append(x.all, what)
		})
	})
	if err != nil {
		x.problem("Run", "without a fault: %v", err)
	}
	r.changes = r.past.Changes()
	return r
}

// Crash lets the power fail, and the process be killed, after each single change, in as many ways as there
// are seeds; seed 0 is the worst case.
func (op *Op) Crash(seeds int) Report {
	x := op.explorer()
	r := x.record()
	for n := range r.changes {
		for seed := range uint64(seeds) {
			x.verify(r.past.PowerLoss(n, seed), r.acked(n), fmt.Sprintf("power loss after change %d (%s), seed %d", n, r.changes[n], seed), seed%8 == 0)
			if seed < max(4, uint64(seeds)/8) {
				x.verify(r.past.Killed(n, seed), r.acked(n), fmt.Sprintf("kill after change %d (%s), seed %d", n, r.changes[n], seed), seed == 0)
			}
			if x.full() {
				return x.Report
			}
		}
	}
	return x.Report
}

// CrashAgain crashes at some changes, again at each change of the recovery, and a third time at some of the
// recovery after that.
func (op *Op) CrashAgain(points, seeds int) Report {
	x := op.explorer()
	r := x.record()
	for _, n := range sample(len(r.changes), points) {
		for seed := range uint64(seeds) {
			for kind, state := range []*FS{r.past.PowerLoss(n, seed), r.past.Killed(n, seed)} {
				what := fmt.Sprintf("%s after change %d (%s), seed %d", [...]string{"power loss", "kill"}[kind], n, r.changes[n], seed)
				x.again(state, r.acked(n), what, seed, 2)
				if x.full() {
					return x.Report
				}
			}
		}
	}
	return x.Report
}

// again recovers state and crashes at each change of that; more times in all.
func (x *explorer) again(state *FS, acked []string, what string, seed uint64, more int) {
	if !x.fresh(state, strings.Join(append(acked, "again", fmt.Sprint(more)), "\x00")) {
		return
	}
	past := state.Record()
	if err := x.recover(state); err != nil {
		x.problem(what, "recovery: %v", err)
		return
	}
	changes := past.Changes()
	points := sample(len(changes), len(changes))
	if more == 1 {
		points = sample(len(changes), 3)
	}
	for _, n := range points {
		for kind, next := range []*FS{past.PowerLoss(n, 0), past.PowerLoss(n, seed+1), past.Killed(n, seed)} {
			then := fmt.Sprintf("%s; then %s after change %d (%s) of the recovery", what, [...]string{"power loss, seed 0,", fmt.Sprintf("power loss, seed %d,", seed+1), "kill"}[kind], n, changes[n])
			if more > 1 {
				x.again(next.Clone(), acked, then, seed, more-1)
			}
			x.verify(next, acked, then, false)
			if x.full() {
				return
			}
		}
	}
}

// sample returns up to want of the numbers below n, from the first to the last.
func sample(n, want int) []int {
	var out []int
	for i := range min(n, want) {
		out = append(out, i*(n-1)/max(min(n, want)-1, 1))
	}
	return out
}

// verify recovers state and says what does not hold. If on, and for some other states, it recovers twice; if
// on, the operation is run again afterwards, and power fails behind it.
func (x *explorer) verify(state *FS, acked []string, what string, on bool) {
	if !x.fresh(state, strings.Join(acked, "\x00")) {
		return
	}
	if !x.hold(state, acked, what, on || x.Distinct%4 == 0) || !on {
		return
	}
	more := slices.Clone(acked)
	if err := x.guard(func() error {
		return x.op.Run(x.disk(state), func(what string) { more = append(more, what) })
	}); err != nil {
		x.problem(what, "the operation after the recovery: %v", err)
		return
	}
	state = state.Clone()
	state.Crash(0)
	x.hold(state, more, what+"; then recovery, the operation, and power loss, seed 0,", false)
}

// hold recovers state, once or twice, and checks it. It reports whether all is well.
func (x *explorer) hold(state *FS, acked []string, what string, twice bool) bool {
	if err := x.recover(state); err != nil {
		return x.problem(what, "recovery: %v", err)
	}
	once := state.Files()
	for name := range once {
		if base := path.Base(name); strings.HasPrefix(base, ".") && strings.HasSuffix(base, "~") {
			return x.problem(what, "recovery leaves %s behind", name)
		}
	}
	if twice {
		if err := x.recover(state); err != nil {
			return x.problem(what, "second recovery: %v", err)
		}
		if name := x.differs(once, state.Files()); name != "" {
			return x.problem(what, "a second recovery changes %s", name)
		}
	}
	if err := x.guard(func() error { return x.op.Check(x.disk(state), acked) }); err != nil {
		return x.problem(what, "%v", err)
	}
	return true
}

// differs returns the name of a file that is not the same; "" = all are.
func (x *explorer) differs(a, b map[string][]byte) string {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[name]; !slices.Contains(x.op.Changing, path.Base(name)) && (!ok || !bytes.Equal(a[name], other)) {
			return name
		}
		delete(b, name)
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		return name
	}
	return ""
}

func (x *explorer) recover(state *FS) error {
	return x.guard(func() error { return x.op.Recover(x.disk(state)) })
}

func (x *explorer) disk(fsys *FS) durable.FS {
	if x.op.Between != nil {
		return x.op.Between(fsys)
	}
	return fsys
}

// guard makes an error of a panic.
func (x *explorer) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
		}
	}()
	return f()
}

// panicked is the error that guard makes.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// fresh counts a state and reports whether there was none like it.
func (x *explorer) fresh(state *FS, with string) bool {
	x.States++
	sum := sum(state, x.seed, with)
	if x.seen[sum] {
		return false
	}
	x.seen[sum] = true
	x.Distinct++
	return true
}

func (x *explorer) full() bool { return len(x.Problems) >= maxProblems }

func (x *explorer) problem(what, format string, args ...any) bool {
	if !x.full() {
		x.Problems = append(x.Problems, fmt.Sprintf("%s: %s: %s", x.op.Name, what, fmt.Sprintf(format, args...)))
	}
	return false
}
