package tui

import (
	"context"
	"encoding/json"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
	"rnix/types"
)

// Source is the wire, as this package needs it. NewSource makes one of a client; tests have their own.
type Source interface {
	// Call calls the method of that name and stores its answer in resp, a pointer. Errors are those of ipc.Call.
	Call(ctx context.Context, method string, req, resp any) error
	// Open calls the stream of that name. Errors are those of ipc.Open. The caller must close what it returns.
	Open(ctx context.Context, method string, req any) (Stream, error)
}

// Stream is a stream of the wire. It is for one goroutine, except Close.
type Stream interface {
	// Next waits for the next frame and stores its data in v, a pointer. A missed range leaves v as it is. It returns io.EOF at
	// the end of the stream; all errors are final.
	Next(v any) (*ipc.Missed, error)
	Close() error
}

// NewSource returns the Source that c is.
func NewSource(c *ipc.Client) Source { return wire{c} }

type wire struct{ c *ipc.Client }

func (w wire) Call(ctx context.Context, method string, req, resp any) error {
	raw, err := ipc.Call(ctx, w.c, ipc.Method[any, json.RawMessage]{Name: method}, req)
	if err != nil {
		return err
	}
	return understood(method, json.Unmarshal(raw, resp))
}

func (w wire) Open(ctx context.Context, method string, req any) (Stream, error) {
	f, err := ipc.Open(ctx, w.c, ipc.Method[any, json.RawMessage]{Name: method, Stream: true}, req)
	if err != nil {
		return nil, err
	}
	return feed{f, method}, nil
}

type feed struct {
	*ipc.Feed[json.RawMessage]
	method string
}

func (f feed) Next(v any) (*ipc.Missed, error) {
	r, err := f.NextRaw()
	if err != nil || r.Missed != nil {
		return r.Missed, err
	}
	return nil, understood(f.method, json.Unmarshal(r.Raw, v))
}

func understood(method string, err error) error {
	if err == nil {
		return nil
	}
	return types.Errorf(types.ErrInternal, method, "", "the daemon's answer is not what this program understands; are they of the same version? %w", err)
}

// patience bounds a call.
const patience = 30 * time.Second

// env is what the parts of the program share. It does not change, but for the theme's width of characters.
type env struct {
	ctx context.Context // of the program, whose end ends all calls
	src Source
	t   *Theme
	now func() time.Time
	// after returns the command that says msg after d.
	after   func(d time.Duration, msg tea.Msg) tea.Cmd
	environ []string // of the user, for what goes on: ipc.ResumeRequest.Env
	kin     *relatives
	traffic *traffic
}

// later is env.after on the clock of the wall; what waits ends with ctx.
func later(ctx context.Context) func(time.Duration, tea.Msg) tea.Cmd {
	return func(d time.Duration, msg tea.Msg) tea.Cmd {
		return func() tea.Msg {
			select {
			case <-time.After(d):
				return msg
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// ask returns the command that calls m and makes its answer a message.
func ask[Req, Resp any](e *env, m ipc.Method[Req, Resp], req Req, then func(Resp, error) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		defer cancel()
		var r Resp
		err := e.src.Call(ctx, m.Name, req, &r)
		return then(r, err)
	}
}
