// Package recoverytest makes histories at random, valid ones, as the loop of a process and its recovery
// write them: for tests of whatever reads histories. It goes through step.Writer, so what is left out
// on disk is left out. It knows no kernel.
package recoverytest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// Options bound a history.
type Options struct {
	Steps int // how many steps at most; 0 = 1
	// Plain leaves out whatever is not a step with calls: for benchmarks, where each step is to cost the same.
	Plain bool
	// NoAnswers leaves out what records say of an answer's cost before its step ends, as older programs did.
	NoAnswers bool
	// Origin, if set, makes the history a fork of another one, of which these are the records.
	Origin   []step.Record
	OriginID types.UUID
}

// Story is a history that was written.
type Story struct {
	// Records are those that were given to the writer, with all that it leaves out on disk. They have their
	// numbers but not their times, which the writer gives.
	Records []step.Record
	// PID is the highest one that the history used.
	PID types.PID
}

// Write writes a history with w, which must be new, and commits it. The writer stays open.
func Write(ctx context.Context, w *step.Writer, r *rand.Rand, o Options) (*Story, error) {
	t := &teller{pen: pen{ctx: ctx, w: w, r: r, o: o, story: &Story{}, pid: types.PID(1 + r.IntN(1000))}}
	t.tell()
	t.commit()
	t.story.PID = t.pid
	return t.story, t.err
}

// pen writes records. After an error it does nothing more.
type pen struct {
	ctx   context.Context
	w     *step.Writer
	r     *rand.Rand
	o     Options
	story *Story
	err   error

	pid types.PID
	ms  []rnixctx.Message // the conversation
}

// teller decides what happens.
type teller struct {
	pen
	step int
	over bool     // the run has ended
	said []string // by persons, and not in the conversation yet
	// open is the answer of a step that was broken off, and what is left of it.
	open  *step.StepRecord
	calls []call
	// mail is the messages that wait, of the mailSeq that have come.
	mail    []uint64
	mailSeq uint64
}

// call is one call of an answer.
type call struct {
	rnixctx.ToolCall
	effect   string
	own      bool // the kernel's own: no intent
	problem  bool // cannot be run
	begun    int
	answered bool
	child    *types.UUID
	err      string
}

func (p *pen) chance(percent int) bool { return p.r.IntN(100) < percent }

func (p *pen) odd(percent int) bool { return !p.o.Plain && p.chance(percent) }

// add notes a record and collects its line.
func (p *pen) add(rec step.Record, write func() error) {
	if p.err != nil {
		return
	}
	rec.V, rec.Seq = step.FormatVersion, p.w.Next()
	if p.err = write(); p.err == nil {
		p.story.Records = append(p.story.Records, rec)
	}
}

func (p *pen) commit() {
	if p.err == nil {
		p.err = p.w.Commit(p.ctx)
	}
}

func (p *pen) message(m rnixctx.Message) {
	p.ms = append(p.ms, m)
	p.add(step.Record{Kind: step.KindMessage, Message: &m}, func() error { return p.w.Message(&m) })
}

func (p *pen) user(text string) {
	p.message(rnixctx.Message{Role: rnixctx.RoleUser, Content: text})
}

func (p *pen) marker(m step.Marker) {
	p.add(step.Record{Kind: step.KindMarker, Marker: &m}, func() error { return p.w.Marker(&m) })
}

func (t *teller) begin(name string) {
	t.pid++
	detail, err := json.Marshal(step.ProcInfo{ProcStatus: types.ProcStatus{PID: t.pid, Name: t.text(2), Intent: "count <b> & \"c\"", Provider: "p", MaxSteps: 50, WorkDir: "/w"}})
	if err != nil && t.err == nil {
		t.err = err
	}
	t.over = false
	t.marker(step.Marker{Name: name, PID: t.pid, Text: "count", Detail: detail})
}

// tell writes the history: runs, one after the other, until the steps are used up.
func (t *teller) tell() {
	switch {
	case t.o.Origin != nil:
		t.fork()
		t.begin(step.MarkerResumed)
	default:
		t.begin(step.MarkerSpawn)
		t.user("count <b> & \"c\"")
	}
	t.commit()
	for end := max(t.o.Steps, 1); t.err == nil; {
		for !t.over && t.step < end && t.err == nil {
			t.turn()
		}
		if !t.over {
			t.end()
		}
		if t.o.Plain || t.step >= end || t.chance(25) {
			return
		}
		t.resume()
	}
}

// fork copies the origin's records up to the end of one of its steps, or to its first message.
func (t *teller) fork() {
	var ends []int
	for i, rec := range t.o.Origin {
		if rec.Kind == step.KindStep {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 {
		ends = []int{slices.IndexFunc(t.o.Origin, func(r step.Record) bool { return r.Kind == step.KindMessage }) + 1}
	}
	n := ends[t.r.IntN(len(ends))]
	detail, err := json.Marshal(step.ForkDetail{Origin: t.o.OriginID, Records: uint64(n)})
	if err != nil && t.err == nil {
		t.err = err
	}
	t.pid += 1000 // none that the origin used
	t.marker(step.Marker{Name: step.MarkerFork, PID: t.pid, Detail: detail})
	for _, rec := range t.o.Origin[:n] {
		t.copy(rec)
	}
}

func (t *teller) copy(rec step.Record) {
	switch rec.Kind {
	case step.KindMessage:
		t.ms = append(t.ms, *rec.Message)
		t.add(rec, func() error {
			if rec.Delivered != nil {
				return t.w.Deliver(rec.Message, rec.Delivered)
			}
			if rec.Answer != nil {
				return t.w.Answer(rec.Message, rec.Answer)
			}
			return t.w.Message(rec.Message)
		})
	case step.KindIntent:
		t.add(rec, func() error { return t.w.Intent(rec.Intent) })
	case step.KindResult:
		t.add(rec, func() error { return t.w.Result(rec.Result) })
	case step.KindStep:
		t.step = max(t.step, rec.Step.StepNumber)
		t.add(rec, func() error { return t.w.Step(rec.Step) })
	case step.KindMarker:
		if ms, ok := step.Compacted(rec.Marker); ok {
			t.ms = ms
		}
		t.marker(*rec.Marker)
	}
}

// end ends a run between two steps.
func (t *teller) end() {
	t.over = true
	switch n := t.r.IntN(5); {
	case t.o.Plain || n == 0:
		t.exit()
	case n == 1:
		t.marker(step.Marker{Name: step.MarkerDaemonStop, PID: t.pid})
	case n == 2:
		detail, err := json.Marshal(step.SuspendDetail{Wake: time.Now().Add(time.Hour).UTC().Round(0), Hint: "rnix resume x"})
		if err != nil && t.err == nil {
			t.err = err
		}
		t.marker(step.Marker{Name: step.MarkerSuspended, PID: t.pid, Text: "rate limit", Detail: detail})
	case n == 3:
		t.marker(step.Marker{Name: step.MarkerPause, PID: t.pid})
		t.commit()
		t.marker(step.Marker{Name: step.MarkerDaemonStop, PID: t.pid})
	default: // killed: it just ends
	}
	t.commit()
}

func (t *teller) exit() {
	x := types.ExitStatus{Reason: types.ReasonCompleted}
	if t.odd(30) {
		x = types.ExitStatus{Code: types.ExitError, Reason: "boom", Err: types.Errorf(types.ErrDriver, "Write", "/dev/llm/p", "boom <x>")}
	}
	t.over = true
	t.marker(step.Marker{Name: step.MarkerExit, PID: t.pid, Text: t.text(20), Exit: &x})
	t.commit()
}

// resume begins a new run: what was open is settled, and a person may say something.
func (t *teller) resume() {
	last := t.story.Records[len(t.story.Records)-1]
	if stopped := last.Marker != nil && slices.Contains([]string{step.MarkerExit, step.MarkerDaemonStop, step.MarkerSuspended}, last.Marker.Name); !stopped && t.chance(70) {
		t.marker(step.Marker{Name: step.MarkerInterrupted, PID: t.pid, Text: "the daemon ended without warning"})
		t.commit()
	}
	t.begin(step.MarkerResumed)
	if t.chance(50) {
		t.said = append(t.said, "go on with "+t.text(5))
		t.marker(*step.InputMarker(t.pid, step.Said{Text: t.said[len(t.said)-1], Attachments: t.shown()}))
	}
	if t.open != nil {
		t.commit()
		t.settle()
	}
	if t.over || t.err != nil {
		return
	}
	for _, text := range t.said {
		t.user(text)
	}
	t.said = nil
	t.commit()
}

// text returns up to n random words, with characters that encoders like to change.
func (p *pen) text(n int) string {
	words := []string{"a", "read", "über", "<tag>", "a&b", "line\nbreak", "\u2028", "\"q\"", "\\", "日本", "\t", "x"}
	var b strings.Builder
	for range p.r.IntN(n + 1) {
		b.WriteString(words[p.r.IntN(len(words))] + " ")
	}
	return strings.TrimSpace(b.String())
}

func (p *pen) snapshot(n int) *step.Snapshot {
	return &step.Snapshot{Step: n, Kind: "git", ID: fmt.Sprintf("%016x", p.r.Uint64()), Root: "/w"}
}
