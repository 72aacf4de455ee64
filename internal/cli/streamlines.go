package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"path"
	"strings"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// The lines of stream-json have the form of those of claude -p --output-format stream-json, as far as docs/guides/naming-and-output.md says. What is ours is in lines of the
// type system with a subtype of ours, and in fields that readers of those lines pass over. Part of the wire format.
type (
	lineHead struct {
		Type      string     `json:"type"`
		Subtype   string     `json:"subtype,omitempty"`
		UUID      types.UUID `json:"uuid"`       // of the line
		SessionID string     `json:"session_id"` // the UUID of the process; empty = none was started
	}
	// initLine is the first line.
	initLine struct {
		lineHead
		Cwd     string       `json:"cwd"`
		Model   string       `json:"model"`
		Tools   []string     `json:"tools"`
		Servers []initServer `json:"mcp_servers"`
		Skills  []string     `json:"skills"` // those whose instructions it has
		// There are none of these.
		Commands []string `json:"slash_commands"`
		Plugins  []string `json:"plugins"`

		PID      types.PID     `json:"pid"`
		Name     string        `json:"name,omitempty"`
		Agent    string        `json:"agent,omitempty"`
		Provider string        `json:"provider"`
		Why      string        `json:"why,omitempty"`
		MaxSteps int           `json:"max_steps"`
		Worktree *ipc.Worktree `json:"worktree,omitempty"`
		Warnings []string      `json:"warnings,omitempty"`
	}
	initServer struct {
		Name   string `json:"name"`
		Status string `json:"status"` // connected, failed
		Why    string `json:"why,omitempty"`
	}
	// rnixEvent is an event of the process, or of one below it, or says that some are missing.
	rnixEvent struct {
		lineHead
		Event  json.RawMessage `json:"event,omitempty"`
		Missed *ipc.Missed     `json:"missed,omitempty"`
	}
)

// The subtypes of lines that are ours.
const (
	eventSubtype  = "rnix_event"
	missedSubtype = "rnix_missed"
)

// lineStream is the state of a stream of lines about one process. It belongs to the goroutine that writes them.
type lineStream struct {
	out     *output
	spawn   *ipc.SpawnResponse // nil = none was started
	begun   time.Time
	partial bool // what the model says is written as it comes
	since   time.Time
	next    int // the number of the first message that was not written
	totals  usageTotals
	pieces  answerPieces
	calls   []callBlock   // of the last answer
	refused []refusedCall // the first types.MaxDenials
}

// linesOf returns the stream of an output: one about no process, if none has begun.
func linesOf(o *output) *lineStream {
	if o.lines == nil {
		return &lineStream{out: o, begun: time.Now()}
	}
	return o.lines
}

func (t *lineStream) head(kind, subtype string) lineHead {
	h := lineHead{Type: kind, Subtype: subtype, UUID: types.NewUUID()}
	if t.spawn != nil {
		h.SessionID = t.spawn.UUID.String()
	}
	return h
}

// streams writes the first line of a stream, and with -v the same for people.
func (w *watch) streams(ctx context.Context, c *ipc.Client) {
	w.out.detail("[kernel] UUID %s; provider: %s", w.spawn.UUID, oneLine(w.spawn.Why))
	if w.out.format != asStream {
		return
	}
	s := &w.spawn
	line := &initLine{lineHead: w.out.lines.head("system", "init"), Cwd: w.req.Cwd, Model: cmp.Or(s.Model, s.Provider), Tools: []string{}, Servers: []initServer{}, Skills: []string{},
		Commands: []string{}, Plugins: []string{}, PID: s.PID, Name: s.Name, Agent: w.req.Agent, Provider: s.Provider, Why: s.Why, MaxSteps: s.MaxSteps, Worktree: s.Worktree,
		Warnings: s.Warnings}
	if d, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: s.UUID.String()}); err != nil {
		w.out.detail("[kernel] its tools cannot be read: %v", err)
	} else {
		line.Cwd, line.Agent = cmp.Or(d.WorkDir, line.Cwd), cmp.Or(d.Agent, line.Agent)
		line.Tools, line.Skills = append(line.Tools, d.Tools...), append(line.Skills, d.Skills...)
		line.Servers = append(line.Servers, serversOf(&d)...)
	}
	w.out.object(line)
}

// serversOf are the MCP servers of a process, by name.
func serversOf(d *ipc.ProcDetail) (servers []initServer) {
	for _, at := range d.MCPMounts {
		_, name, _ := strings.Cut(path.Base(at), "-") // <pid>-<name>
		s := initServer{Name: name, Status: "connected"}
		for _, down := range d.MCPDown {
			if server, why, _ := strings.Cut(down, ":"); server == name {
				s.Status, s.Why = "failed", strings.TrimSpace(why)
			}
		}
		servers = append(servers, s)
	}
	return servers
}

// streamLine writes an event, or the gap where events are missing, as a line.
func (w *watch) streamLine(f *frame) {
	t := w.out.lines
	if f.missed != nil {
		w.out.object(&rnixEvent{lineHead: t.head("system", missedSubtype), Missed: f.missed})
		return
	}
	if e := &f.e; e.UUID == w.spawn.UUID {
		if e.Kind == event.StepStarted {
			if t.partial {
				t.write(t.pieces.broken())
			}
			t.pieces = answerPieces{step: e.Step, answer: t.pieces.answer, at: t.pieces.at}
		}
		if isPiece(e) {
			events := t.pieces.add(e, t.model())
			if t.partial {
				t.write(events)
				return
			}
		}
	}
	w.out.object(&rnixEvent{lineHead: t.head("system", eventSubtype), Event: f.raw})
}

// model is the model that answers, as the spawn has named it.
func (t *lineStream) model() answerer {
	return answerer{t.spawn.UUID, cmp.Or(t.spawn.Model, t.spawn.Provider)}
}

// spokenPatience is how long an answer of the record is waited for between two events: signals wait for it. What it does not say in time, a later call writes.
const spokenPatience = 2 * time.Second

// spoken writes the new messages of the conversation up to a step as lines.
func (w *watch) spoken(ctx context.Context, c *ipc.Client, upTo int, patience time.Duration) {
	if w.out.format != asStream {
		return
	}
	if err := w.out.lines.messages(ctx, c, upTo, patience); err != nil {
		w.out.detail("[kernel] its messages cannot be read: %v", err)
	}
}

// lastPatience is how long an answer of the record is waited for when the process has ended: a conversation of many steps may be left to write.
const lastPatience = 10 * time.Second

// last writes the lines that are left before the result of a process that has ended.
func (w *watch) last(ctx context.Context, c *ipc.Client) {
	w.spoken(ctx, c, math.MaxInt, lastPatience)
	if t := w.out.lines; t != nil {
		_ = t.totals.read(ctx, c, w.spawn.UUID, lastPatience) // without it, what is known counts
		t.totals.end()
	}
}

// partial reports whether a stream has what the model says as it comes.
func (w *watch) partial() bool { return w.out.lines != nil && w.out.lines.partial }

// ripe returns the step of which an event says that it has new messages on record; 0 = it says nothing of that.
func (w *watch) ripe(e *ipc.Event) int {
	if w.out.format != asStream || e.UUID != w.spawn.UUID {
		return 0
	}
	s := &w.out.lines.pieces
	switch e.Kind {
	case event.StepEnded:
		return e.Step
	case event.Asked, event.SyscallBegun: // the first call that may take long: its answer is on record
		if !s.written && (len(s.blocks) > 0 || !strings.HasPrefix(e.Path, "/dev/llm/")) {
			return s.step
		}
	}
	return 0
}
