package cli

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/ipc"
	"rnix/types"
)

// sayAsks says what is asked about a process that is waited for, or about one below it, each once, until the returned function is called.
func (f *follower) sayAsks(ctx context.Context, p *followed) (stop func()) {
	if p.uuid == (types.UUID{}) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	client := f.client
	var work sync.WaitGroup
	work.Go(func() { // ends with ctx, or with the daemon
		feed, err := ipc.Open(ctx, client, ipc.Events, ipc.EventsRequest{Target: p.name, Tree: true, Follow: true, UntilEnd: true, Kinds: []event.Kind{event.Asked}})
		f.sayOpen(ctx, client, p) // behind that nothing is missed
		if err != nil {           // it does not run, and what it asks does not change by itself
			return
		}
		defer feed.Close()
		for {
			e, err := feed.Next()
			if err != nil {
				return
			}
			if e.Missed == nil {
				f.sayAsk(p, &e.Data)
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// sayOpen says what is asked already.
func (f *follower) sayOpen(ctx context.Context, client *ipc.Client, p *followed) {
	r, err := ipc.Call(ctx, client, ipc.ListAsks, ipc.AsksRequest{MaxInput: 1})
	if err != nil {
		return
	}
	for i := range r.Asks {
		k := &r.Asks[i]
		if k.UUID == p.uuid || slices.ContainsFunc(k.Lineage, func(up ipc.Kin) bool { return up.UUID == p.uuid }) {
			e := &ipc.Event{PID: k.PID, Args: strconv.FormatUint(k.Number, 10), Text: k.Text}
			if k.Question != nil {
				e.Path = permit.AskPath
			}
			f.sayAsk(p, e)
		}
	}
}

func (f *follower) sayAsk(p *followed, e *ipc.Event) {
	if p.said[e.Args] {
		return
	}
	if p.said == nil {
		p.said = map[string]bool{}
	}
	p.said[e.Args] = true
	f.app.out.talk("[ask] PID %d: %s; %s", e.PID, oneLine(e.Text), answerWith(e))
}
