// Package notify tells a person of what happens while that person does not look: in the ways that the user's configuration says. It never
// keeps anything else from going on.
package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"rnix/internal/config"
	"rnix/internal/event"
	"rnix/internal/proc"
	"rnix/internal/redact"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// Service follows the event log. Its fields are set before Run.
type Service struct {
	Events  *event.Log
	Index   Index
	Callers service.Callers
	Config  func() *config.Notify // as it is at the moment
	Start   Starter
	Home    string // where programs are started
	Lookup  config.Lookup
	Secrets *redact.Set
	Log     *slog.Logger
}

// Index knows the histories. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
}

// Starter starts OS processes. *proc.Manager is one.
type Starter interface {
	Start(ctx context.Context, spec proc.Spec) (*proc.Child, error)
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) { service.Handle(on, ipc.NotifyTest, d.test) }

// leastPause is how long it waits when there was nothing to tell, before it reads the configuration again.
const leastPause = time.Second

// maxWaiting bounds what waits to be told; what comes then is counted only.
const maxWaiting = 1000

// Run tells of what happens until ctx ends, or the log.
func (d *Service) Run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	come, followed := make(chan Item), make(chan struct{})
	go func() { // ends with ctx
		defer close(followed)
		defer stop()
		d.follow(ctx, come)
	}()
	d.tell(ctx, come)
	stop()
	<-followed
}

// follow finds in the event log what is to be told.
func (d *Service) follow(ctx context.Context, come chan<- Item) {
	cur := d.Events.Cursor(0)
	for {
		e, err := cur.Next(ctx)
		if _, missed := errors.AsType[*event.Missed](err); missed {
			continue
		}
		if err != nil {
			return
		}
		if e.Kind != event.Asked && e.Kind != event.Exited {
			continue
		}
		info, _ := d.Index.Get(e.UUID)
		it, ok := itemOf(&e, &info, d.Secrets)
		if !ok {
			continue
		}
		select {
		case come <- it:
		case <-ctx.Done():
			return
		}
	}
}

// tell tells of what comes: of the first at once, of what follows together when the time between two notices is over. A notice that cannot be
// brought delays those behind it and loses none of what came meanwhile.
func (d *Service) tell(ctx context.Context, come <-chan Item) {
	var waiting []Item
	var free <-chan time.Time // when the next notice may go; nil = now
	var busy chan struct{}    // closed when the one that is on its way is there
	for {
		if len(waiting) > 0 && free == nil && busy == nil {
			c := d.Config()
			wanted := slices.DeleteFunc(waiting, func(it Item) bool { return !c.Told() || !slices.Contains(c.On.V, it.Kind) })
			if waiting, free = nil, time.After(leastPause); len(wanted) > 0 {
				n := NoticeOf(wanted)
				busy, free = make(chan struct{}), time.After(time.Duration(c.Every.V))
				go func(done chan<- struct{}) { // ends with ctx
					defer close(done)
					d.bring(ctx, c, &n)
				}(busy)
			}
		}
		select {
		case it := <-come:
			if len(waiting) < maxWaiting {
				waiting = append(waiting, it)
			}
		case <-free:
			free = nil
		case <-busy:
			busy = nil
		case <-ctx.Done():
			if busy != nil {
				<-busy
			}
			return
		}
	}
}

// bring brings a notice by each way, and tries again where that fails.
func (d *Service) bring(ctx context.Context, c *config.Notify, n *Notice) {
	for _, w := range d.ways(c) {
		err := w.tell(ctx, n)
		for i := 0; err != nil && i < len(tryAgain); i++ {
			select {
			case <-time.After(tryAgain[i]):
			case <-ctx.Done():
				return
			}
			err = w.tell(ctx, n)
		}
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("a notice could not be brought", "way", w.name, "notice", n.Title, "err", err)
		}
	}
}

// test tells something by each way, once, and says what came of it.
func (d *Service) test(ctx context.Context, peer *ipc.Peer, _ ipc.Empty) (resp ipc.NotifyTestResponse, err error) {
	if err := service.People(d.Callers, peer, "Notify", "not tell people of something"); err != nil {
		return resp, err
	}
	c := d.Config()
	n := NoticeOf([]Item{{Kind: config.NoticeDone, PID: 0, Name: "rnix notify test", Text: "this is a test", Time: time.Now()}})
	n.Title = "Rnix: a test"
	resp = ipc.NotifyTestResponse{On: c.On.V, Ways: []ipc.NotifyWay{}}
	for _, w := range d.ways(c) {
		r := ipc.NotifyWay{Way: w.name}
		if err := w.tell(ctx, &n); err != nil {
			r.Error = err.Error()
		}
		resp.Ways = append(resp.Ways, r)
	}
	if c.TokenEnv.V != "" && c.Post.V == "" {
		resp.Ways = append(resp.Ways, ipc.NotifyWay{Way: "post", Error: "notify.token_env is set (" + c.TokenEnv.Origin + "), and notify.post is not"})
	}
	return resp, nil
}
