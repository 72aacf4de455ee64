package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// verdict is what the journals of both daemons and the store of the control plane say of a fight.
type verdict struct {
	f         *field
	histories []*fought
	claims    []claimed
	stored    map[string]int // how often a text is in the store
	told      int            // activities in the store
	figures   map[string]int
}

// fought is one process of a fight.
type fought struct {
	who    *fighter
	id     types.UUID
	task   string
	token  uint64 // under which it ran; 0 = it never did
	lostAt time.Time
	exit   *types.ExitStatus
	said   []saying
	acted  []time.Time // when an action was about to begin
	owed   string      // what the journal of its session holds
}

type saying struct {
	at   time.Time
	text string
}

// claimed is one tenure, by the control plane.
type claimed struct {
	at    time.Time
	token uint64
	owner string
}

// newVerdict reads the histories first, then the journals, then the store: what is in none of the later ones is lost.
func newVerdict(f *field, both []*fighter) *verdict {
	f.t.Helper()
	v := &verdict{f: f, stored: map[string]int{}, figures: map[string]int{}}
	for _, x := range both {
		dirs, err := filepath.Glob(filepath.Join(x.data, "steps", "*", step.StepsFile))
		if err != nil {
			f.t.Fatal(err)
		}
		for _, d := range dirs {
			v.histories = append(v.histories, v.history(x, filepath.Dir(d)))
		}
	}
	for _, h := range v.histories {
		files, _ := filepath.Glob(filepath.Join(h.who.data, "sessions", h.id.String(), "events-*.jsonl"))
		for _, name := range files {
			b, _ := os.ReadFile(name) // it may go meanwhile: then all of it is told
			h.owed += string(b)
		}
	}
	v.store()
	return v
}

func (v *verdict) history(x *fighter, dir string) *fought {
	h := &fought{who: x}
	if err := h.id.UnmarshalText([]byte(filepath.Base(dir))); err != nil {
		v.f.t.Fatal(err)
	}
	all, err := step.ReadDir(context.Background(), durable.OS, dir, h.id)
	if err != nil {
		v.f.t.Fatal(err)
	}
	for _, r := range all.Records {
		switch {
		case r.Message != nil && r.Message.Role == "assistant":
			h.said = append(h.said, saying{r.Time, r.Message.Content})
			h.task, _, _ = strings.Cut(r.Message.Content, " ")
		case r.Intent != nil:
			h.acted = append(h.acted, r.Time)
		case r.Marker != nil && r.Marker.Name == step.MarkerExit:
			h.exit = r.Marker.Exit
		}
	}
	file, err := os.Open(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		v.f.t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e event.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Kind != event.Leased {
			continue
		}
		if h.token = max(h.token, uint64(e.Step)); h.token != uint64(e.Step) {
			v.f.t.Errorf("%s ran under token %d and then under %d", h.id, h.token, e.Step)
		}
		if e.Result == "lost" {
			h.lostAt = e.Time
		}
		v.figures["lease "+e.Result]++
	}
	return h
}

// store reads what the control plane has, and checks that what is told is told by the owner of that moment, and once.
func (v *verdict) store() {
	ids := map[string]bool{}
	for after := uint64(0); ; {
		var page struct {
			Events []struct {
				At   time.Time
				Kind string
				Data struct {
					Owner        string
					FencingToken uint64
					Token        uint64
					EventID      string
					Body         struct{ Type, Content, Status string }
				}
			}
			Next uint64
		}
		v.f.ask(fmt.Sprint("/api/sessions/", fightSession, "/events?limit=1000&after=", after), &page)
		if len(page.Events) == 0 {
			return
		}
		after = page.Next
		for _, e := range page.Events {
			if e.Kind == "claim" {
				c := claimed{e.At, e.Data.Token, e.Data.Owner}
				if c.token != uint64(len(v.claims)+1) {
					v.f.t.Errorf("claim %d has token %d", len(v.claims)+1, c.token)
				}
				v.claims = append(v.claims, c)
				continue
			}
			if e.Data.EventID == "" {
				continue
			}
			if e.Data.Token != uint64(len(v.claims)) {
				v.f.t.Errorf("%s was told under token %d, when %d was in force", e.Kind, e.Data.Token, len(v.claims))
			}
			if ids[e.Kind+e.Data.EventID] {
				v.f.t.Errorf("told twice: %+v", e)
			}
			ids[e.Kind+e.Data.EventID] = true
			if e.Kind == "activity" {
				v.told++
				if e.Data.Body.Type == "thought" { // a last word is told as a response, too
					v.stored[e.Data.Body.Content]++
				}
			}
		}
	}
}

// missing names what an agent has said that is neither told nor pending. What it said after the loss of the session is not the session's.
func (v *verdict) missing(peace bool) (out []string) {
	v.figures["said"], v.figures["pending"], v.figures["said after the loss"] = 0, 0, 0
	for _, h := range v.histories {
		for i, s := range h.said {
			v.figures["said"]++
			n := v.stored[s.text]
			switch pending := strings.Contains(h.owed, `"`+s.text+`"`); {
			case n > 1:
				out = append(out, fmt.Sprintf("%q is stored %d times", s.text, n))
			case n == 1:
			case pending && !peace:
				v.figures["pending"]++
			case pending:
				out = append(out, fmt.Sprintf("%q is pending still", s.text))
			case !h.lostAt.IsZero() && i == len(h.said)-1 && s.at.After(h.lostAt.Add(-time.Second)):
				v.figures["said after the loss"]++
			default:
				out = append(out, fmt.Sprintf("%q of %s is lost; %+v, lost at %v, said at %v", s.text, h.id, h.exit, h.lostAt, s.at))
			}
		}
	}
	return out
}

// nothingIsLost checks that all that was said is stored once, or pending; in peace, that it is stored.
func (v *verdict) nothingIsLost(peace bool) {
	v.f.t.Helper()
	for _, m := range v.missing(peace) {
		v.f.t.Error(m)
	}
}

// ownerOf is the token under which somebody else had the session from a moment on that is before at; 0 = nobody.
func (v *verdict) successor(token uint64, at time.Time) (next claimed, there bool) {
	if int(token) >= len(v.claims) {
		return next, false
	}
	next = v.claims[token] // tokens begin with 1
	return next, next.at.Before(at)
}

// awoken reports whether a daemon had stood still until just before a moment: what it was about to do when it was stopped, it does then,
// and no check before can prevent it. That is what fencing tokens are for.
func awoken(x *fighter, at time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.ContainsFunc(x.stops, func(s span) bool { return at.After(s.to.Add(-50*time.Millisecond)) && at.Before(s.to.Add(time.Second)) })
}

// oneOwner checks that nobody was about to act when somebody else had claimed the session, and that each token is that of one process.
func (v *verdict) oneOwner() {
	v.f.t.Helper()
	ran := map[uint64]*fought{}
	for _, h := range v.histories {
		if h.token == 0 {
			if len(h.acted) > 0 {
				v.f.t.Errorf("%s has acted, and nobody knows under which token", h.id)
			}
			continue
		}
		if other := ran[h.token]; other != nil {
			v.f.t.Errorf("token %d is that of %s and of %s", h.token, h.id, other.id)
		}
		ran[h.token] = h
		if c := v.claims[h.token-1]; !strings.HasSuffix(h.id.String(), c.owner[strings.LastIndex(c.owner, "-")+1:]) {
			v.f.t.Errorf("token %d was given to %s, and %s ran under it", h.token, c.owner, h.id)
		}
		for _, at := range h.acted {
			v.figures["actions"]++
			v.check(h, at, "was about to act")
		}
	}
	last := ""
	for _, c := range v.claims {
		h := ran[c.token]
		if testing.Verbose() {
			task := "-"
			if h != nil {
				task = fmt.Sprint(h.task, " ", len(h.acted), " actions ", h.exit)
			}
			v.f.t.Log(c.at.Format("05.000"), c.token, c.owner, task)
		}
		if h == nil {
			v.figures["claims to tell the rest, or that nobody heard of"]++
			continue
		}
		if last != "" && last != h.who.name {
			v.figures["changes of the daemon"]++
		}
		last = h.who.name
	}
}

func (v *verdict) check(h *fought, at time.Time, what string) {
	v.f.t.Helper()
	next, there := v.successor(h.token, at)
	switch {
	case !there:
	case awoken(h.who, at):
		v.figures["actions that a stop cut in two"]++
	default:
		v.f.t.Errorf("%s (%s) %s under token %d at %v, when %s had %d since %v", h.task, h.id, what, h.token, at, next.owner, next.token, next.at)
	}
}

// acts checks what the agents did to the world: each thing once, and each by the owner.
func (v *verdict) acts() {
	v.f.t.Helper()
	b, err := os.ReadFile(v.f.acts)
	if err != nil {
		v.f.t.Fatal(err)
	}
	byTask := map[string]*fought{}
	for _, h := range v.histories {
		if h.task != "" {
			byTask[h.task] = h
		}
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		var task string
		var n int
		var ns int64
		if _, err := fmt.Sscan(line, &task, &n, &ns); err != nil {
			v.f.t.Fatalf("%q: %v", line, err)
		}
		h := byTask[task]
		if key := fmt.Sprint(task, " ", n); h == nil || seen[key] {
			v.f.t.Errorf("%q was done by nobody, or twice", key)
			continue
		} else {
			seen[key] = true
		}
		v.figures["commands that ran"]++
		v.check(h, time.Unix(0, ns), "has acted")
	}
}

// settled waits until the platform knows all and nobody has the session.
func (f *field) settled(both []*fighter) {
	f.t.Helper()
	began := time.Now()
	for {
		var left []string
		for _, x := range both {
			found, _ := filepath.Glob(filepath.Join(x.data, "sessions", "*"))
			left = append(left, found...)
		}
		var st struct {
			Ownership struct {
				Owned bool
				Owner string
			}
		}
		f.ask("/api/sessions/"+fightSession, &st)
		if len(left) == 0 && !st.Ownership.Owned {
			f.t.Logf("all is told %v after the last fault", time.Since(began).Round(time.Millisecond))
			return
		}
		if time.Since(began) > 2*time.Minute {
			f.t.Fatalf("after %v the platform does not know all: %q, %+v", time.Since(began), left, st)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// report says what kind of fight it was, and fails if it was none.
func (v *verdict) report(both []*fighter, long time.Duration) {
	v.f.mu.Lock()
	faults, requests := map[string]int{"crashes of the control plane": v.f.down}, int64(0)
	v.f.mu.Unlock()
	for _, x := range both {
		x.wire.counted(faults)
		requests += x.wire.seen.Load()
		x.mu.Lock()
		faults["daemons stopped"] += len(x.stops)
		for code, n := range x.ends {
			v.figures[fmt.Sprint("runs with exit code ", code)] += n
		}
		for i, text := range x.failed {
			if !strings.Contains(text, "the session") && !strings.Contains(text, "claim") {
				v.f.t.Errorf("a run ended as none should: %s", text)
			} else if i == 0 {
				v.f.t.Log(text)
			}
		}
		x.mu.Unlock()
	}
	v.f.t.Logf("%v with seed %d: %d requests, %d claims, %d processes, %d activities stored", long, *fightSeed, requests, len(v.claims), len(v.histories), v.told)
	for _, m := range []map[string]int{v.figures, faults} {
		var lines []string
		for _, k := range slices.SortedFunc(maps.Keys(m), cmp.Compare[string]) {
			lines = append(lines, fmt.Sprint(k, " ", m[k]))
		}
		v.f.t.Log(strings.Join(lines, ", "))
	}
	if n := v.figures["changes of the daemon"]; n < 2 || len(v.claims) < int(long/(5*time.Second)) || v.figures["commands that ran"] < 10 {
		v.f.t.Errorf("%d owners, and the other daemon %d times: that was no fight", len(v.claims), n)
	}
}
