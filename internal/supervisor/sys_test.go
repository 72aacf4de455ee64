package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// device is a file whose Write is a function.
type device struct {
	mu     sync.Mutex
	caller vfs.Caller
	do     func(ctx context.Context, c vfs.Caller, data []byte) (string, error)
	out    []byte // +checklocks:mu
}

func (d *device) BindCaller(c vfs.Caller) error { d.caller = c; return nil }
func (d *device) Write(ctx context.Context, data []byte) error {
	out, err := d.do(ctx, d.caller, data)
	d.mu.Lock()
	d.out = []byte(out)
	d.mu.Unlock()
	return err
}
func (d *device) Read(int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.out
	d.out = nil
	if len(out) == 0 {
		return nil, io.EOF
	}
	return out, nil
}
func (d *device) Close() error                { return nil }
func (d *device) Stat() (vfs.FileStat, error) { return vfs.FileStat{}, nil }

// reply is what the test's model says.
type reply struct {
	Content string
	Calls   []string // "name {json}"
	Tokens  int
}

func (r reply) json() string {
	type call = rnixctx.ToolCall
	var doc struct {
		Content   string         `json:"content"`
		ToolCalls []call         `json:"tool_calls"`
		Usage     map[string]int `json:"usage"`
	}
	doc.Content, doc.Usage = r.Content, map[string]int{"input_tokens": r.Tokens}
	for i, c := range r.Calls {
		name, in, _ := strings.Cut(c, " ")
		doc.ToolCalls = append(doc.ToolCalls, call{ID: fmt.Sprint("c", i), Name: name, Input: json.RawMessage(in)})
	}
	b, _ := json.Marshal(doc)
	return string(b)
}

// sys is a kernel with a model that is a function and a tool "/dev/tool" that is one.
type sys struct {
	*kernel.KernelImpl
	t      *testing.T
	model  func(ctx context.Context, c vfs.Caller, turn int) (reply, error)
	tool   func(ctx context.Context, c vfs.Caller) (string, error)
	turns  sync.Map // types.PID -> *int
	cfg    kernel.Config
	events *event.Log
	stores *memStore
}

func newSys(t *testing.T, change ...func(*kernel.Config)) *sys {
	t.Helper()
	s := &sys{t: t, events: event.New(1 << 14), stores: &memStore{recs: map[types.UUID]*memRecord{}}}
	devs := vfs.NewDeviceRegistry()
	reg := func(path string, do func(context.Context, vfs.Caller, []byte) (string, error), tools ...vfs.Tool) {
		if err := devs.RegisterTools(path, func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &device{do: do}, nil }, tools); err != nil {
			t.Fatal(err)
		}
	}
	reg("/dev/llm/m", func(ctx context.Context, c vfs.Caller, _ []byte) (string, error) {
		n, _ := s.turns.LoadOrStore(c.PID, new(int))
		*n.(*int)++
		r, err := s.model(ctx, c, *n.(*int))
		return r.json(), err
	})
	reg("/dev/tool", func(ctx context.Context, c vfs.Caller, _ []byte) (string, error) { return s.tool(ctx, c) },
		vfs.Tool{Name: "tool", Schema: json.RawMessage(`{"type":"object"}`), Path: "/dev/tool", Effect: vfs.EffectExternal})
	s.cfg = kernel.Config{Devices: devs, Contexts: rnixctx.NewManager(), Events: s.events, Store: s.stores}
	for _, c := range change {
		c(&s.cfg)
	}
	s.KernelImpl = kernel.New(s.cfg, nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if n := s.cfg.Contexts.Len(); n != 0 {
			t.Errorf("%d conversations are left", n)
		}
	})
	return s
}

// opts is what every spawn of the tests needs.
func opts(change ...func(*kernel.SpawnOpts)) kernel.SpawnOpts {
	o := kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "m"}, WorkDir: "/"}
	for _, c := range change {
		c(&o)
	}
	return o
}

func (s *sys) spawn(change ...func(*kernel.SpawnOpts)) types.PID {
	s.t.Helper()
	pid, err := s.Spawn("do it", nil, opts(change...))
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// untilKilled is a model that answers only when it is cancelled.
func untilKilled(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
	<-ctx.Done()
	return reply{}, context.Cause(ctx)
}

// memStore keeps histories in memory, and can fail.
type memStore struct {
	mu     sync.Mutex
	recs   map[types.UUID]*memRecord
	infos  []step.ProcInfo
	create error
}

type memRecord struct {
	mu                 sync.Mutex
	pending, committed []step.Record
	closed             bool
	fail               error
}

func (m *memStore) Create(id types.UUID) (kernel.Recorder, error) {
	if m.create != nil {
		return nil, m.create
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &memRecord{}
	m.recs[id] = r
	return r, nil
}
func (m *memStore) Discard(id types.UUID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.recs, id)
	return nil
}
func (m *memStore) SaveInfo(i step.ProcInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.infos = append(m.infos, i)
	return nil
}
func (m *memStore) SaveMeta(types.UUID, string, []vfs.Tool, vfs.ModelCard) error { return nil }
func (m *memStore) Ended(types.UUID)                                             {}
func (m *memStore) Seal(*step.Settled) string                                    { return "" }
func (m *memStore) SaveInputs(types.UUID, []step.Input) ([]step.InputRef, error) { return nil, nil }
func (m *memStore) Input(types.UUID, step.InputRef) (string, error)              { return "", nil }
func (m *memStore) SaveAttachment(types.UUID, []byte) (string, error)            { return "", nil }
func (m *memStore) Attachment(types.UUID, string) ([]byte, error)                { return nil, nil }
func (m *memStore) Steps(types.UUID) ([]step.StepRecord, error)                  { return nil, nil }
func (m *memStore) of(id types.UUID) *memRecord                                  { m.mu.Lock(); defer m.mu.Unlock(); return m.recs[id] }

func (r *memRecord) Add(recs ...step.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range recs {
		rec.Time = time.Now()
		r.pending = append(r.pending, rec)
	}
	return r.fail
}
func (r *memRecord) Commit() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.committed = append(r.committed, r.pending...)
	r.pending = nil
	return r.fail
}
func (r *memRecord) Close() error { r.mu.Lock(); defer r.mu.Unlock(); r.closed = true; return nil }

// kinds lists what was committed, in short.
func (r *memRecord) kinds() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, c := range r.committed {
		s := string(c.Kind)
		if c.Marker != nil {
			s = c.Marker.Name
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}
