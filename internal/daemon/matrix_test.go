package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/types"
)

// TestEveryVerbDoesTheSameHoweverAndWhereverAProcessIsNamed compares each cell of the matrix of verbs, ways of naming, places and
// families with the model: what is refused and why, and what becomes of each member of the family. What deviates today
// stands in a table; a cell that is not in it and deviates fails the test, and so does one that is and does not.
func TestEveryVerbDoesTheSameHoweverAndWhereverAProcessIsNamed(t *testing.T) {
	cells := matrixCells()
	if soak.Pick(t, "cells of the matrix, pairs or all", "pairs", "all") == "pairs" {
		cells = pairwise(cells)
	}
	if only := os.Getenv("RNIX_MATRIX"); only != "" {
		cells = slices.DeleteFunc(matrixCells(), func(c square) bool { return !strings.Contains(c.String(), only) })
	}
	t.Logf("%d of %d cells", len(cells), len(matrixCells()))
	for i, clans := range settle(cells) {
		t.Run(fmt.Sprint(worldOf(clans[0].place), " ", i+1), func(t *testing.T) {
			w := &world{m: &actors{over: t.Context(), parts: map[string]part{}}, clans: clans}
			w.setUp(t)
			w.play(t)
		})
	}
}

// matrixCells are all cells that there are.
func matrixCells() (cells []square) {
	for _, place := range matrixPlaces {
		for _, family := range matrixFamilies {
			if _, ok := before(place, family); !ok {
				continue
			}
			for _, verb := range matrixVerbs {
				for _, naming := range matrixNamings {
					if decided(verb, place, family) {
						cells = append(cells, square{verb, naming, place, family})
					}
				}
			}
		}
	}
	return cells
}

// pair is two values of different axes.
type pair [2]string

// pairs are those of a cell.
func (c square) pairs() (out []pair) {
	v := []string{"verb " + c.verb, "naming " + c.naming, "place " + c.place, "family " + c.family}
	for i := range v {
		for j := range i {
			out = append(out, pair{v[i], v[j]})
		}
	}
	return out
}

// pairwise picks cells such that each pair of values of two axes is in one of them, and each line of the
// deviations too. It is the same ones each time.
func pairwise(cells []square) (out []square) {
	numbers := map[pair]int{} // of all pairs
	has := make([][]int, len(cells))
	for i, c := range cells {
		for _, p := range c.pairs() {
			if _, known := numbers[p]; !known {
				numbers[p] = len(numbers)
			}
			has[i] = append(has[i], numbers[p])
		}
	}
	met, picked := make([]bool, len(numbers)), make([]bool, len(cells))
	take := func(i int) {
		out, picked[i] = append(out, cells[i]), true
		for _, p := range has[i] {
			met[p] = true
		}
	}
	for i := range deviations {
		for n, c := range cells {
			if !picked[n] && deviations[i].has(c) {
				take(n)
				break
			}
		}
	}
	for {
		best, most := 0, 0
		for i := range cells {
			n := 0
			for _, p := range has[i] {
				if !met[p] {
					n++
				}
			}
			if n > most {
				best, most = i, n
			}
		}
		if most == 0 {
			return out
		}
		take(best)
	}
}

// alike reports whether cells of the same place and family can have one family: their verb moves nobody.
func alike(c square) bool {
	k, _ := before(c.place, c.family)
	o := expect(c.verb, k)
	return c.place == "archived" || c.place == "gone" || strings.HasPrefix(c.place, "ended") && o.code != "" ||
		slices.Contains([]string{"steer", "send", "wait", "log", "steps", "diff"}, c.verb)
}

// maxClans bounds the families of a daemon: of each at most three ask their models at once, of 256.
const maxClans = 80

// settle divides cells among families, and these among daemons.
func settle(cells []square) (worlds [][]*clan) {
	shared := map[[2]string]*clan{}
	open := map[string][]*clan{}
	for n, c := range cells {
		k, _ := before(c.place, c.family)
		one := &clan{kinship: k, place: c.place, family: c.family, name: fmt.Sprint("f", n)}
		if alike(c) {
			key := [2]string{c.place, c.family}
			if shared[key] != nil {
				shared[key].cells = append(shared[key].cells, c)
				continue
			}
			shared[key] = one
		}
		one.cells = []square{c}
		name := worldOf(c.place)
		if open[name] = append(open[name], one); len(open[name]) == maxClans {
			worlds, open[name] = append(worlds, open[name]), nil
		}
	}
	for _, name := range []string{"live", "stop", "kill -9", "gc"} {
		if len(open[name]) > 0 {
			worlds = append(worlds, open[name])
		}
	}
	return worlds
}

// called is how a way of naming calls the named process of a family. all are the UUIDs of the daemon.
func called(c *clan, naming string, all []types.UUID) string {
	id := c.uuids[c.target].String()
	switch naming {
	case "PID":
		return c.pids[c.target].String()
	case "UUID":
		return id
	case "name":
		return c.label(c.target)
	}
	for n := 8; ; n++ {
		if !slices.ContainsFunc(all, func(o types.UUID) bool { return o.String() != id && strings.HasPrefix(o.String(), id[:n]) }) {
			return id[:n]
		}
	}
}

// shortWait is how long a wait lasts that is to end without an answer.
const shortWait = 50

// act does what a cell says, and returns how that was answered.
func (w *world) act(ctx context.Context, c square, of *clan, target string) (o outcome, why string, err error) {
	action, tree := strings.CutSuffix(c.verb, " --subtree")
	var id types.UUID
	client := w.s.Client
	signal := func(sig types.Signal) {
		method := ipc.Signal
		if tree {
			method = ipc.SignalTree
		}
		r, serr := ipc.Call(ctx, client, method, ipc.SignalRequest{Target: target, Signal: sig})
		id, err = r.UUID, serr
	}
	switch action {
	case "kill -TERM":
		signal(types.SIGTERM)
	case "kill -KILL":
		signal(types.SIGKILL)
	case "kill -INT":
		signal(types.SIGINT)
	case "pause":
		signal(types.SIGPAUSE)
	case "resume":
		r, rerr := ipc.Call(ctx, client, ipc.Resume, ipc.ResumeRequest{Target: target, Tree: tree, Env: w.s.Env})
		id, err = r.UUID, rerr
	case "budget add":
		r, rerr := ipc.Call(ctx, client, ipc.AddBudget, ipc.AddBudgetRequest{Target: target, Tree: tree, Tokens: moreBudget, Env: w.s.Env})
		id, err = r.UUID, rerr
	case "steer", "send":
		method := ipc.Send
		if action == "steer" {
			method = ipc.Steer
		}
		r, rerr := ipc.Call(ctx, client, method, ipc.SendRequest{Target: target, Text: "look at " + c.String()})
		id, err = r.UUID, rerr
	case "wait":
		limit := int64(60_000)
		if want := expect(c.verb, of.kinship); want.code == types.ErrTimeout || findingOf(c) != nil {
			limit = shortWait
		}
		r, rerr := ipc.Call(ctx, client, ipc.Wait, ipc.WaitRequest{Target: target, TimeoutMs: limit})
		id, err = r.UUID, rerr
		if o.says = string(endedBy(r.Exit.Code)); r.Suspended {
			o.says = "suspended"
		}
	case "log":
		id, err = w.log(ctx, target)
	case "steps":
		r, rerr := ipc.Call(ctx, client, ipc.ListSteps, ipc.StepsRequest{Target: target})
		id, err = r.UUID, rerr
	case "diff":
		r, rerr := ipc.Call(ctx, client, ipc.DiffFiles, ipc.DiffRequest{Target: target})
		id, err = r.UUID, rerr
	}
	if err == nil && action == "log" && of.place == "cut off" && id == (types.UUID{}) {
		return o, "", nil // its events were not on disk yet
	}
	if err == nil && id != of.uuids[of.target] {
		return o, "", fmt.Errorf("it was done to %s", id)
	}
	if err == nil {
		return o, "", nil
	}
	switch why = err.Error(); {
	case strings.Contains(why, "archived on"):
		o.says = "archived"
	case strings.Contains(why, "deleted on"):
		o.says = "deleted"
	default:
		o.says = ""
	}
	o.code = types.CodeOf(err)
	return o, why, nil
}

// log reads the log of a process, and returns whose events they are.
func (w *world) log(ctx context.Context, target string) (id types.UUID, err error) {
	feed, err := ipc.Open(ctx, w.s.Client, ipc.Events, ipc.EventsRequest{Target: target, History: true})
	if err != nil {
		return id, err
	}
	defer feed.Close()
	for f, err := range feed.All() {
		switch {
		case err != nil:
			return id, err
		case f.Missed != nil || f.Data.UUID == types.UUID{}:
		case id == types.UUID{}:
			id = f.Data.UUID
		case id != f.Data.UUID:
			return id, errors.New("it has the events of several")
		}
	}
	return id, nil
}

// result is what came of a cell.
type result struct {
	square
	of  *clan
	got outcome
	why string // of a refusal
	err error
}

// play does what all cells say, and judges what has come of each.
func (w *world) play(t *testing.T) {
	t.Helper()
	var all []types.UUID
	for _, c := range w.clans {
		all = append(all, c.uuids...)
	}
	var mu sync.Mutex
	var results []*result
	slots := make(chan struct{}, 4)
	var acts sync.WaitGroup
	for _, c := range w.clans {
		slots <- struct{}{}
		acts.Go(func() {
			defer func() { <-slots }()
			for _, one := range c.cells {
				r := &result{square: one, of: c}
				r.got, r.why, r.err = w.act(t.Context(), one, c, called(c, one.naming, all))
				mu.Lock()
				results = append(results, r)
				mu.Unlock()
			}
		})
	}
	acts.Wait()
	w.quiet(t)
	w.judge(t, results)
}

// quiet waits until nothing has happened for a while in a daemon whose models all hang.
func (w *world) quiet(t *testing.T) {
	t.Helper()
	last, since := uint64(0), time.Now()
	until(t, "nothing happens any more", func() bool {
		r, err := ipc.Call(t.Context(), w.s.Client, ipc.ListProcs, ipc.ListRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Seq != last {
			last, since = r.Seq, time.Now()
		}
		return time.Since(since) > 700*time.Millisecond
	})
}

// patient is how long what is to come is waited for. On a busy machine, it may come late.
const patient = 20 * time.Second

// judge compares what has come of the cells with the model and with the table of what deviates.
func (w *world) judge(t *testing.T, results []*result) {
	t.Helper()
	wrong := func() (out []string) {
		now := w.fates(t)
		for _, r := range results {
			r.got.after = nil
			for _, id := range r.of.uuids {
				r.got.after = append(r.got.after, now(id))
			}
			if text := r.verdict(); text != "" {
				out = append(out, text)
			}
		}
		return out
	}
	late, tick := time.After(patient), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	left := wrong()
	for waits := true; waits && len(left) > 0; left = wrong() {
		select {
		case <-tick.C:
		case <-late:
			waits = false
		}
	}
	slices.Sort(left)
	for _, text := range left {
		t.Error(text)
	}
}

// verdict says what is wrong with a cell; "" = nothing.
func (r *result) verdict() string {
	if r.err != nil {
		return fmt.Sprintf("%s: %v", r.square, r.err)
	}
	want, known := expect(r.verb, r.of.kinship), findingOf(r.square)
	same := r.got.equal(want)
	switch {
	case known == nil && !same:
		return fmt.Sprintf("%s: %s, want %s\n\t%s", r.square, r.got, want, r.why)
	case known != nil && same:
		return fmt.Sprintf("%s: %s, as it should be: take it out of the deviations (%s)", r.square, r.got, known.finding)
	case known != nil && r.got.code != known.code:
		return fmt.Sprintf("%s: %s, want %s; the deviations (%s) say that today it is %q", r.square, r.got, want, known.finding, known.code)
	}
	return ""
}
