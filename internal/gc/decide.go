package gc

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/internal/compose"
	"rnix/internal/step"
	"rnix/types"
)

const day = 24 * time.Hour

// maxDays is the most days that are counted, so that no sum of times overflows.
const maxDays = 100 * 365

// Entry is what Decide knows of a history.
type Entry struct {
	step.ProcInfo
	Pinned bool // somebody wants it to stay
	// Reprieved says that no person has pinned it: it came back from its archive a while ago.
	Reprieved bool
	Note      string // why, if that was said; or what is wrong with the pin
	// Problem says why nothing is known of the history but its UUID, and names the file. Empty = it
	// could be read.
	Problem string
	File    string // its proc-info.json, for warnings
}

// Policy says what is not kept. The zero value keeps everything.
type Policy struct {
	RetentionDays int // since the last event; 0 = no limit
	MaxEntries    int // histories that have ended and that nothing exempts; 0 = no limit
	ArchiveDays   int // that an archive stays, since it was made; 0 = no limit
	// Grace is how long a history is left alone after its end: its last lines may be on their way.
	Grace time.Duration
}

// Off reports whether the policy keeps everything.
func (p Policy) Off() bool { return p.RetentionDays <= 0 && p.MaxEntries <= 0 && p.ArchiveDays <= 0 }

// Ref names a history for people and programs.
type Ref struct {
	UUID   types.UUID `json:"uuid"`
	PID    types.PID  `json:"pid"`
	Name   string     `json:"name,omitempty"`
	Intent string     `json:"intent,omitempty"` // its first line
	DeadAt time.Time  `json:"dead_at,omitzero"`
}

func refOf(p *step.ProcInfo) Ref {
	return Ref{UUID: p.UUID, PID: p.PID, Name: p.Name, Intent: step.FirstLine(p.Intent), DeadAt: p.DeadAt}
}

// Candidate is a history that goes, and the limit that it has hit.
type Candidate struct {
	Ref
	Why      string `json:"why"`
	Archived bool   `json:"archived,omitempty"` // it is in an archive, which goes for good, whatever the mode
}

// Exemption is a history that stays whatever the limits say, and the reason for it.
type Exemption struct {
	Ref
	Reason string `json:"reason"`
}

// Plan is what Decide says. Candidates go in their order: the one that ended first goes first.
type Plan struct {
	Candidates []Candidate `json:"candidates"`
	Exempt     []Exemption `json:"exempt"`
	Kept       int         `json:"kept"`     // have ended, may go, and are within the limits
	Warnings   []string    `json:"warnings"` // each names the file of a history that is skipped
}

// Decide says which histories go. Hitting either limit is enough. Age counts from the end that the
// history itself records, never from the time of a file. Exempt are those that have not ended, that
// are pinned, that a living process was forked from or descends from, and the nodes of a run of a workflow that
// has not ended; a history of which the end
// is not known is skipped with a warning. Exempt and skipped ones do not count for MaxEntries. It is
// pure, and its lists are never nil.
func Decide(entries []Entry, p Policy, now time.Time) Plan {
	plan := Plan{Candidates: []Candidate{}, Exempt: []Exemption{}, Warnings: []string{}}
	family := relatives(entries)
	mayGo := make([]*Entry, 0, len(entries))
	for i := range entries {
		e := &entries[i]
		if warning := e.doubt(now); warning != "" {
			plan.Warnings = append(plan.Warnings, warning)
			continue
		}
		if reason := e.exemption(p, now, family); reason != "" {
			plan.Exempt = append(plan.Exempt, Exemption{refOf(&e.ProcInfo), reason})
			continue
		}
		mayGo = append(mayGo, e)
	}
	slices.SortFunc(mayGo, func(a, b *Entry) int {
		if c := a.DeadAt.Compare(b.DeadAt); c != 0 {
			return c
		}
		return bytes.Compare(a.UUID[:], b.UUID[:])
	})
	over := 0
	if p.MaxEntries > 0 {
		over = max(0, len(mayGo)-p.MaxEntries)
	}
	for i, e := range mayGo {
		if why := p.hit(e.DeadAt, now, i < over); why != "" {
			plan.Candidates = append(plan.Candidates, Candidate{Ref: refOf(&e.ProcInfo), Why: why})
		} else {
			plan.Kept++
		}
	}
	return plan
}

// hit says which limit a history has hit; "" = none.
func (p Policy) hit(deadAt, now time.Time, tooMany bool) string {
	var why []string
	days := min(p.RetentionDays, maxDays)
	if days > 0 && now.Sub(deadAt) > time.Duration(days)*day {
		why = append(why, fmt.Sprintf("ended %s ago, over the %d of gc.retention_days", types.Counted(int(now.Sub(deadAt)/day), "day", "days"), p.RetentionDays))
	}
	if tooMany {
		why = append(why, fmt.Sprintf("not among the latest %d, gc.max_entries", p.MaxEntries))
	}
	return strings.Join(why, "; ")
}

// expired returns the archives that have been there for longer than they may, the oldest first. It is pure.
func expired(archives []step.Archived, p Policy, now time.Time) (out []Candidate) {
	days := min(p.ArchiveDays, maxDays)
	if days <= 0 {
		return nil
	}
	archives = slices.SortedStableFunc(slices.Values(archives), func(a, b step.Archived) int { return a.At.Compare(b.At) })
	for i := range archives {
		if a := &archives[i]; now.Sub(a.At) > time.Duration(days)*day {
			out = append(out, Candidate{Ref: refOf(&a.Info), Archived: true,
				Why: fmt.Sprintf("archived %s ago, over the %d of gc.archive_days", types.Counted(int(now.Sub(a.At)/day), "day", "days"), p.ArchiveDays)})
		}
	}
	return out
}

// doubt says why nothing may be decided about a history; "" = nothing is wrong.
func (e *Entry) doubt(now time.Time) string {
	switch {
	case e.Problem != "":
		return e.Problem + "; it is kept"
	case !e.ended():
		return ""
	case e.DeadAt.IsZero():
		return e.File + ": dead_at is missing, so that its age is not known; it is kept"
	case e.DeadAt.After(now):
		return fmt.Sprintf("%s: dead_at is %s, which is in the future; it is kept (is the clock right?)", e.File, e.DeadAt.UTC().Format(time.RFC3339))
	}
	return ""
}

// ended reports whether a history is over. One that a stopping daemon has suspended is not, though its
// process is dead.
func (e *Entry) ended() bool { return e.State == types.StateDead && !e.Suspended }

// living reports whether a history has a process, or will have one again when it is resumed.
func (e *Entry) living() bool { return e.Problem == "" && !e.ended() && e.Exit == nil }

// exemption says why a history stays; "" = it may go.
func (e *Entry) exemption(p Policy, now time.Time, family map[types.UUID]string) string {
	switch {
	case e.Suspended:
		return "it is suspended and can be resumed"
	case e.State == types.StateZombie:
		return "it has ended and was not reaped"
	case !e.ended():
		return "it is " + e.State.String()
	case e.Pinned && e.Note != "":
		return "it is kept: " + e.Note
	case e.Pinned:
		return "it is kept"
	case family[e.UUID] != "":
		return family[e.UUID]
	case now.Sub(e.DeadAt) < p.Grace:
		return fmt.Sprintf("it ended less than %s ago", p.Grace)
	}
	return ""
}

// relatives says of every history that living processes were forked from or descend from, which
// process that is.
func relatives(entries []Entry) map[types.UUID]string {
	byID := make(map[types.UUID]*Entry, len(entries))
	for i := range entries {
		byID[entries[i].UUID] = &entries[i]
	}
	out := map[types.UUID]string{}
	// A chain is followed until it meets one that was followed: damaged files may hold circles.
	follow := func(living *Entry, up func(*Entry) types.UUID, relation string, seen map[types.UUID]bool) {
		for e := byID[up(living)]; e != nil && !seen[e.UUID]; e = byID[up(e)] {
			seen[e.UUID] = true
			if out[e.UUID] == "" {
				out[e.UUID] = fmt.Sprintf("PID %d, which is %s, %s it", living.PID, living.doing(), relation)
			}
		}
	}
	origins, ancestors := map[types.UUID]bool{}, map[types.UUID]bool{}
	for i := range entries {
		e := &entries[i]
		if up := byID[e.ParentUUID]; up != nil && up.Kind == compose.ProcessKind && up.Problem == "" && !up.ended() {
			out[e.UUID] = fmt.Sprintf("PID %d, which is %s, needs what it has brought", up.PID, up.doing())
		}
		if e.living() {
			follow(e, func(e *Entry) types.UUID { return e.OriginUUID }, "was forked from", origins)
			follow(e, func(e *Entry) types.UUID { return e.ParentUUID }, "descends from", ancestors)
		}
	}
	return out
}

func (e *Entry) doing() string {
	if e.Suspended {
		return "suspended"
	}
	return e.State.String()
}
