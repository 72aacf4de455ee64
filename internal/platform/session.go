// Package platform keeps the session of one process with a platform: its lease, and what the platform is told
// of it. It owns the session's journal; it knows neither processes nor kernels, and reads what a process does
// from the records of its history.
package platform

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"rnix/agent"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/runtime/activity"
	"rnix/runtime/heartbeat"
	"rnix/runtime/journal"
	"rnix/runtime/status"
	"rnix/types"
)

// Config says which session, and who is told of what happens to it. SessionID, URL, WorkerID, Dir and Lost
// are required.
type Config struct {
	SessionID string
	IssueID   string
	WorkerID  string
	URL       string
	Token     string
	Interval  time.Duration // 0 = the usual one
	Dir       string        // of the session's journal; it goes when the platform knows all that is in it
	Provider  string        // goes along with what is told
	Redact    func(string) string
	Log       *slog.Logger
	Over      bool // the process has ended before: only what is left is told
	last      tenure

	// Lost is called once, from a goroutine of the session, when the session is not ours any more; stop says that
	// the platform wants it to end. It must not wait for the session.
	Lost func(stop bool)
	// Held is called, from a goroutine of the session, when the lease has run out, so that nobody knows whose the session
	// is, and when it is ours again. nil = nobody is told.
	Held func(Standing)
	// Beat is called, from a goroutine of the session, with the time in ms since 1970 at which the platform has confirmed the
	// lease. nil = nobody is told.
	Beat func(at int64)
	// Say gives the process what a person has said on the platform, durably. An error means that it will never
	// take it. key names the message: what comes twice under one is one. nil = messages stay with the platform.
	Say func(ctx context.Context, key, text string) error
}

// Session is one process's session with a platform. Safe for concurrent use. Close it.
type Session struct {
	cfg    Config
	pulse  *heartbeat.Pulser
	log    *journal.Journal
	act    *activity.Poster
	stat   *status.Poster
	ctx    context.Context // of what runs beside; ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup // who watches the lease, and who hands over messages
	beats  chan struct{}  // the lease was confirmed

	mu sync.Mutex
	// +checklocks:mu
	mine chan struct{} // closed when the lease is confirmed the next time
	// +checklocks:mu
	told bool // how it ended is on its way
	// +checklocks:mu
	names map[string]string // of tools that are called
}

// Open claims a session and begins to keep it. CONFLICT, with heartbeat.ErrLostOwnership in the chain, if
// another owner has it.
func Open(ctx context.Context, cfg Config) (*Session, error) {
	hb := heartbeat.Config{SessionID: cfg.SessionID, WorkerID: cfg.WorkerID, IssueID: cfg.IssueID, BaseURL: cfg.URL, AuthToken: cfg.Token,
		Interval: cfg.Interval, Logger: cfg.Log}
	lease, err := heartbeat.Claim(ctx, hb)
	if err != nil {
		return nil, err
	}
	cfg.last = cfg.last.claimed(lease.FencingToken)
	s := &Session{cfg: cfg, names: map[string]string{}, beats: make(chan struct{}, 1), mine: make(chan struct{})}
	hb.OnHeartbeatAck = s.confirmed
	hb.FencingToken, hb.TTL = lease.FencingToken, leaseFor(lease.TTL, cfg.Interval)
	hb.StrikesUntilLost = math.MaxInt // an outage holds the session, however long it lasts: only the platform says that it is lost
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if cfg.Say != nil {
		hb.OnInject = s.inject
	}
	if err := s.open(hb); err != nil {
		s.cancel()
		return nil, errors.Join(err, s.release(ctx))
	}
	if err := s.pulse.Start(s.ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	s.act.Start(s.ctx)
	s.stat.Start(s.ctx)
	s.work.Go(s.watch) // ends with the session
	return s, nil
}

// leaseFor is how long a lease is good if a platform says ttl, or does not.
func leaseFor(ttl, interval time.Duration) time.Duration {
	return cmp.Or(ttl, heartbeat.DefaultStrikesUntilLost*cmp.Or(interval, heartbeat.DefaultInterval))
}

// open makes the parts.
func (s *Session) open(hb heartbeat.Config) (err error) {
	if s.pulse, err = heartbeat.New(hb); err != nil {
		return err
	}
	c := &s.cfg
	if s.log, err = journal.Open(journal.Options{Dir: c.Dir, Session: c.SessionID}); err != nil {
		return err
	}
	if err := c.note(c.last); err != nil {
		return errors.Join(err, s.log.Close())
	}
	s.act, err = activity.New(activity.Config{SessionID: c.SessionID, WorkerID: c.WorkerID, BaseURL: c.URL, AuthToken: c.Token, Token: s.pulse.Token,
		Journal: s.log, Logger: c.Log, ProviderName: c.Provider, Redact: c.Redact, Running: func() bool { return !c.Over && !s.Ended() }})
	if err == nil {
		s.stat, err = status.New(status.Config{SessionID: c.SessionID, WorkerID: c.WorkerID, BaseURL: c.URL, AuthToken: c.Token, Token: s.pulse.Token,
			Journal: s.log, Logger: c.Log, Stale: c.last.Stale})
	}
	if err != nil {
		return errors.Join(err, s.log.Close())
	}
	return nil
}

// inject takes a message of a person. It is acknowledged when the process has it for good, which may take
// longer than a heartbeat waits.
func (s *Session) inject(p heartbeat.InjectPayload) bool {
	s.work.Go(func() { // ends when the process has it, or with the session
		if err := s.cfg.Say(s.ctx, "platform:"+p.DeliveryID, p.Text); err == nil {
			s.pulse.AckInject(p.DeliveryID)
		} else if s.ctx.Err() == nil {
			s.pulse.DeadLetterInject(p.DeliveryID, err.Error())
		}
	})
	return false
}

// Lost reports whether the session is not ours any more, and whether that is since the platform wants it to end:
// then it hears how it does.
func (s *Session) Lost() (lost, stop bool) {
	select {
	case <-s.pulse.LostOwnership():
		return true, s.pulse.StopRequested()
	default:
		return false, false
	}
}

// foreign reports whether the session is somebody else's, or may be.
func (s *Session) foreign() bool {
	lost, stop := s.Lost()
	return lost && !stop
}

// Ended reports whether the process has ended, and not only its run.
func (s *Session) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// Record tells what a record of the history means. It waits for nothing but the disk. What happens after the loss
// of the session is nothing of it.
func (s *Session) Record(rec *step.Record) {
	if s.foreign() {
		return
	}
	s.mu.Lock()
	events := eventsOf(rec, s.names)
	s.mu.Unlock()
	for _, e := range events {
		s.act.Send(s.ctx, e)
	}
	if m := rec.Marker; m != nil && m.Name == step.MarkerExit && m.Exit != nil {
		s.ended(m.Text, *m.Exit)
	}
}

// ended tells how the process ended.
func (s *Session) ended(result string, exit types.ExitStatus) {
	s.mu.Lock()
	s.told = true
	s.mu.Unlock()
	st := status.Status{Status: "completed"}
	if exit.Code != types.ExitOK {
		st.Status, st.Error = "failed", &status.Error{Message: s.clean(exit.Reason)}
	}
	if err := s.stat.Complete(s.ctx, activity.Elide(s.clean(result), 4000), st); err != nil && s.cfg.Log != nil {
		s.cfg.Log.Warn("the end of a session cannot be told", "session", s.cfg.SessionID, "err", err)
	}
}

func (s *Session) clean(text string) string {
	if s.cfg.Redact == nil {
		return text
	}
	return s.cfg.Redact(text)
}

// State is how a session stands.
type State struct {
	SessionID    string
	FencingToken uint64
	LastTick     time.Time // when the platform has last confirmed the lease; zero = never
	Pending      int       // things that the platform does not know yet
	Trouble      string    // why it took nothing the last time; empty = none
}

// State says how the session stands.
func (s *Session) State() State {
	st := State{SessionID: s.cfg.SessionID, FencingToken: s.pulse.Token(), Pending: s.act.Pending() + s.stat.Pending()}
	if t := s.pulse.LastTick(); t > 0 {
		st.LastTick = time.UnixMilli(t)
	}
	if err := errors.Join(s.act.Err(), s.stat.Err()); err != nil {
		st.Trouble = err.Error()
	}
	return st
}

// Close tells what is pending, for at most 10 s, and gives the session back, in as much time again at most. It
// waits for no platform that the session is lost to, nor after the end of ctx. What the platform still does not know
// stays in the journal: State says how much, and Settle tells it later. A journal of which it knows all is removed.
func (s *Session) Close(ctx context.Context) error {
	if s.foreign() {
		s.cancel()
	}
	stop := context.AfterFunc(ctx, s.cancel)
	var both sync.WaitGroup
	both.Go(s.act.Stop) // ends in time; waited for below
	s.stat.Stop()
	both.Wait()
	stop()
	err := s.pulse.Stop()
	s.cancel()
	s.work.Wait()
	if !s.foreign() {
		err = errors.Join(err, s.release(ctx))
	}
	if cerr := s.log.Close(); cerr != nil || s.State().Pending > 0 {
		return errors.Join(err, cerr)
	}
	return errors.Join(err, durable.RemoveDir(durable.OS, s.cfg.Dir))
}

// Settle tells what a process that has ended has left in the journal of its session, until the platform knows it or
// ctx ends, and returns how much is left. It claims the session for that and gives it back. CONFLICT, with
// heartbeat.ErrLostOwnership in the chain, if another owner has it. If another one has had it since, what the process
// did is told all the same, but not how it ended: that is not how the session stands any more.
func Settle(ctx context.Context, cfg Config) (left int, err error) {
	over := make(chan struct{})
	cfg.Over, cfg.Say, cfg.Held, cfg.Beat, cfg.Lost = true, nil, nil, nil, func(bool) { close(over) }
	if cfg.last, err = cfg.look(ctx); err != nil {
		return 0, err
	}
	s, err := Open(ctx, cfg)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the session or with cancel
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.act.Drained(ctx)
	s.stat.Drained(ctx)
	err = s.Close(ctx)
	return s.State().Pending, err
}

// release gives the lease back, so that another owner need not wait until it has run out.
func (s *Session) release(ctx context.Context) error {
	if s.pulse == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return s.pulse.Release(ctx)
}

// eventsOf returns what a record says to people. names has the tools of calls that have no answer yet.
func eventsOf(rec *step.Record, names map[string]string) (out []agent.Event) {
	switch m := rec.Message; {
	case m != nil && m.Role == "assistant":
		if m.Content != "" {
			out = append(out, agent.AssistantTextEvent{Text: m.Content})
		}
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
			out = append(out, agent.ToolUseEvent{ToolUseID: c.ID, ToolName: c.Name, Input: c.Input})
		}
	case m != nil && m.Role == "tool":
		out = append(out, agent.ToolResultEvent{ToolUseID: m.ToolCallID, ToolName: names[m.ToolCallID], Content: m.Content, IsError: m.IsError})
		delete(names, m.ToolCallID)
	case rec.Marker != nil && rec.Marker.Name == step.MarkerExit && rec.Marker.Exit != nil:
		e := agent.ResultEvent{Success: rec.Marker.Exit.Code == types.ExitOK, Message: rec.Marker.Text}
		if !e.Success {
			e.Errors, e.Subtype = []string{rec.Marker.Exit.Reason}, "exit"
		}
		out = append(out, e)
	}
	return out
}
