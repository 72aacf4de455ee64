package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// mcpRoot is where MCP servers are mounted, each as <pid>-<server>.
const mcpRoot = "/mnt/mcp"

// modelRoot is where models are.
const modelRoot = "/dev/llm"

// spawnRight is the path that must be allowed for the spawn action. No device is there.
const spawnRight = "/sys/spawn"

// maxIntent bounds an intent, in bytes: it is shown by every listing, and written several times.
const maxIntent = 1 << 20

// ErrNoProcess is the cause of NOT_FOUND errors about processes.
var ErrNoProcess = errors.New("no such process")

// errLeaving is the cause of errors about a parent that takes no children any more.
var errLeaving = errors.New("the parent is ending")

// Passing reports whether a call has failed because a process has left the table, or is about to: it has ended then or is
// suspended, and the call can be made again.
func Passing(err error) bool { return errors.Is(err, ErrNoProcess) || errors.Is(err, errLeaving) }

// SpawnOpts says how to start a process. The zero value is a top-level process with the agent's own
// settings and all rights. Pointers tell "not said" from zero.
type SpawnOpts struct {
	types.ProcSpec
	UUID      types.UUID // zero = a new one
	ParentPID types.PID  // 0 = started by a person

	// FailedSteps is after how many steps in a row in which every call failed it ends; 0 = 40, negative = never.
	FailedSteps int

	CtxSize int           // messages; 0 = no limit (budgets and windows count tokens)
	Timeout time.Duration // of the whole process, pauses left out; 0 = none

	// Recorded says that the lists stand in a history, where one of an earlier version may hold what has no effect: it
	// is kept and not refused.
	Recorded bool

	WorkDir   string // absolute; empty = the parent's
	ReadRoots []string

	MCP []agent.MCPServer // besides the agent's

	// Inputs are data that go with the intent: the process is told them with it, marked as data and cut
	// where they are long, and finds each as a whole at /proc/self/inputs/<name>. The one named "pipe" is
	// what came out of a pipe. They stay with the history.
	Inputs []Input

	// Env is the composed environment of OS children. Secret looks up credentials for drivers. Both
	// are kept in memory only.
	Env    []string
	Secret func(name string) (string, bool)
	// Profile is handed to devices as Caller.Profile. The kernel does not look at it.
	Profile any
	// Settings is kept in the history, for a later run: what the assembly needs to make Profile again. It
	// must hold no secrets.
	Settings json.RawMessage

	// Groups are the process groups that it is in from the beginning.
	Groups []types.PGID

	// From continues a history, whose UUID is given; nil = a new one begins.
	From *From

	Body Body // what runs in place of the reasoning loop; nil = an agent
}

// Spawn starts a process that works on intent as agent, and returns its PID. It settles every value
// (call, then agent, then default), opens the model, mounts the agent's MCP servers and starts the
// reasoning goroutine. If anything fails, everything before it is taken back and only the PID is
// spent.
func (k *KernelImpl) Spawn(intent string, ag *agent.Agent, opts SpawnOpts) (types.PID, error) {
	return k.SpawnContext(context.Background(), intent, ag, opts)
}

// SpawnContext is Spawn with a context for the work of starting (mounting servers can take long). The
// end of ctx after SpawnContext returned means nothing to the process.
func (k *KernelImpl) SpawnContext(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (types.PID, error) {
	p, err := spawnBy(ctx, k, k.table.caller(opts.ParentPID), intent, ag, opts)
	if err != nil {
		return 0, err
	}
	return p.PID, nil
}

// spawn is SpawnContext for callers that need the process, which may have ended and be gone already.
func (k *KernelImpl) spawn(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (_ *Process, err error) {
	start := time.Now()
	if f := opts.From; f != nil {
		defer func() {
			if err != nil {
				_ = f.Rec.Close() // err matters more
			}
		}()
	}
	if ag == nil {
		ag = &agent.Agent{}
	}
	switch {
	case strings.TrimSpace(intent) == "":
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "the intent is empty")
	case len(intent) > maxIntent:
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "the intent has %d bytes and at most %d are taken: put the text into a file and tell the agent to read it", len(intent), maxIntent)
	}
	if err := step.CheckInputs(opts.Inputs); err != nil {
		return nil, err
	}
	if err := opts.Labels.Check(); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "%w", err)
	}
	if err := noSecretIn(k.cfg.Secrets, &opts); err != nil {
		return nil, err
	}
	intent = k.conceal(intent, &opts)
	if opts.From != nil && len(opts.Inputs) > 0 {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "a resumed history has the inputs that it began with: give From.Input")
	}
	var parent *Process
	if opts.ParentPID != 0 {
		if parent, err = k.table.lookup("Spawn", opts.ParentPID); err != nil {
			return nil, err
		}
	}
	p, err := k.settle(intent, ag, parent, opts)
	if err != nil {
		return nil, err
	}
	if p.PID, p.depth, err = k.table.admit(parent, opts.From != nil); err != nil {
		return nil, err
	}
	descend(p, parent)
	k.budgets.open(p, limitOf(ag, &opts))
	defer func() {
		if err != nil {
			k.abandon(p)
		}
	}()

	if p.CtxID, err = k.ctxMgr.CtxAlloc(opts.CtxSize); err != nil {
		return nil, err
	}
	k.vfs.AdmitAs(p.PID, func() vfs.Caller { return p.caller(k) })
	took, err := openModel(k, p)
	if err != nil {
		return nil, err
	}
	l, system, err := k.prepare(ctx, p, parent, ag)
	if err != nil {
		return nil, err
	}
	if opts.From != nil {
		p.rec = opts.From.Rec
	} else if p.rec, err = k.store.Create(p.UUID); err != nil {
		return nil, err
	}
	if merr := k.store.SaveMeta(p.UUID, system, p.kit.list, p.model); merr != nil {
		k.log.Warn("process-meta.json", "err", merr) // nothing depends on it
	}
	if err = k.begin(p); err != nil {
		return nil, err
	}
	p.began = time.Now() // not before its record says so: what it has lived must not be less after a resume
	if err = k.table.insert(p); err != nil {
		k.saves.refusedAgain(p, err)
		return nil, err
	}
	for _, id := range opts.Groups {
		_ = k.table.join(p, id) // nobody can have reaped it yet
	}
	if parent != nil && parent.opts.Body != nil {
		parent.opts.Body.Joined(p)
	}
	k.launch(p, l, start, took)
	return p, nil
}

// prepare gives a process what it reasons with besides its model: its servers, its tools and its system
// prompt. One that has a body needs none of them, and has no loop.
func (k *KernelImpl) prepare(ctx context.Context, p, parent *Process, ag *agent.Agent) (_ *loop.Loop, system string, err error) {
	if p.opts.Body != nil {
		return nil, "", embody(k, p)
	}
	if err = k.budgets.priced(p); err != nil {
		return nil, "", err
	}
	if err = k.servers.mountFor(ctx, p, parent, serversOf(ag, p.opts)); err != nil {
		return nil, "", err
	}
	l, system, err := k.equip(p, ag)
	if err != nil {
		return nil, "", err
	}
	return l, system, k.ctxMgr.SetSystemPrompt(p.CtxID, system)
}

// abandon takes back what a failed spawn has, last first. Errors are left alone: the caller has one.
func (k *KernelImpl) abandon(p *Process) {
	if p.rec != nil && p.opts.From == nil {
		_ = p.rec.Close()
		_ = k.store.Discard(p.UUID)
	}
	k.servers.unmountFor(nil, p)
	_ = k.vfs.CloseAll(p.PID)
	if p.CtxID != 0 {
		_ = k.ctxMgr.CtxFree(p.CtxID)
	}
	p.purse.Leave()
}

// settle makes the process object: every value that does not need a resource.
func (k *KernelImpl) settle(intent string, ag *agent.Agent, parent *Process, opts SpawnOpts) (*Process, error) {
	p := &Process{
		UUID: opts.UUID, opts: opts,
		card: &card{Intent: intent, Agent: ag.Name, Labels: maps.Clone(opts.Labels), CreatedAt: time.Now(), WorkDir: opts.WorkDir, ReadRoots: opts.ReadRoots, modelPath: modelPath(opts)},
		left: make(chan struct{}), gone: make(chan struct{}),
	}
	p.call(opts.Name)
	if k.mail.records(p) {
		p.box.Max = 4 * mailMax // the post keeps the bound
	}
	if p.UUID == (types.UUID{}) {
		p.UUID = types.NewUUID()
	}
	if opts.From != nil {
		p.trees = k.cfg.Workspace.Trees(p.UUID) // not yet visible, so no lock
	}
	settleStall(p, ag)
	p.MaxSteps = DefaultMaxSteps
	for _, n := range []*int{ag.MaxSteps, opts.MaxSteps} { // the later wins, an explicit zero too
		if n != nil {
			p.MaxSteps = max(*n, 0)
		}
	}
	outer := Rights{}
	if parent != nil {
		p.rel.parent = parent // not yet visible, so no lock
		outer = parent.Rights
		p.parentUUID = parent.UUID
		p.WorkDir = orDefault(p.WorkDir, parent.WorkDir)
		if p.ReadRoots == nil {
			p.ReadRoots = parent.ReadRoots
		}
		if p.opts.Env == nil {
			p.opts.Env = parent.opts.Env
		}
		if p.opts.Secret == nil {
			p.opts.Secret = parent.opts.Secret
		}
		if p.opts.Profile == nil {
			p.opts.Profile = parent.opts.Profile
		}
	}
	if opts.From == nil && !opts.Recorded {
		if err := k.CheckDevices(append(slices.Clone(ag.Devices), opts.AllowedDevices...), opts.DeniedDevices); err != nil {
			return nil, err
		}
	}
	if err := mayHave(k.table, p, parent); err != nil {
		return nil, err
	}
	p.Rights = Rights{}.Narrow(ag.Devices).Narrow(opts.AllowedDevices).Without(opts.DeniedDevices).Within(outer)
	p.began, p.runs = p.CreatedAt, 0
	if opts.From != nil {
		opts.From.take(p)
	}
	p.runs++
	if p.WorkDir != "" && !filepath.IsAbs(p.WorkDir) {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", p.WorkDir, "the working directory is not an absolute path")
	}
	if opts.Provider == "" && opts.Body == nil {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "no provider was chosen")
	}
	if ag.Models.ReasoningEffort != "" && opts.Effort == "" {
		p.opts.Effort = ag.Models.ReasoningEffort
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p, nil
}

// withIdentity tells OS children to which process of which kernel they belong, so that an rnix that they start makes
// child processes of it.
func withIdentity(env []string, p *Process, address []string) []string {
	own := append([]string{"RNIX_PARENT_PID=" + p.PID.String(), "RNIX_UUID=" + p.UUID.String()}, address...)
	out := make([]string, 0, len(env)+len(own))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			out = append(out, kv)
		}
	}
	return append(out, own...)
}

func orDefault(s, def string) string {
	if s != "" {
		return s
	}
	return def
}

// modelPath returns the path of the model device: /dev/llm/<provider>, with
// /fallback/<provider>[/<model>] behind it if there is one.
func modelPath(o SpawnOpts) string {
	path := modelRoot + "/" + o.Provider
	if o.FallbackProvider != "" || o.FallbackModel != "" {
		path += "/fallback/" + orDefault(o.FallbackProvider, o.Provider)
		if o.FallbackModel != "" {
			path += "/" + o.FallbackModel
		}
	}
	return path
}

// begin writes what a history begins with, durably: the settled options and the intent.
func (k *KernelImpl) begin(p *Process) error {
	if f := p.opts.From; f != nil {
		return k.goOn(p, f)
	}
	text, err := k.keepInputs(p)
	if err != nil {
		return err
	}
	first := rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
	if err := k.ctxMgr.Append(p.CtxID, first); err != nil {
		return err
	}
	if !k.keeps {
		return nil
	}
	detail, err := p.settled(k.table.current(p))
	if err != nil {
		return err
	}
	err = p.rec.Add(
		step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerSpawn, PID: p.PID, Text: p.Intent, Detail: detail}},
		step.Record{Kind: step.KindMessage, Message: &first},
	)
	if err == nil {
		err = p.rec.Commit()
	}
	return err
}

// launch starts the reasoning goroutine of a process that is in the table. took is how long it took to open its model.
func (k *KernelImpl) launch(p *Process, l *loop.Loop, began time.Time, took time.Duration) {
	k.events.Append(event.Event{Kind: event.Spawned, PID: p.PID, UUID: p.UUID, PPID: k.table.ppid(p), Intent: rnixctx.Elide(p.Intent, 4<<10), Agent: p.Agent,
		Provider: p.progress.Provider, Model: p.progress.Model, // +checklocksignore: it changes only in the goroutine that starts below
		Total: p.MaxSteps, Name: p.Name(), Dur: time.Since(began)})
	opened(k, p, took)
	if err := p.start(k.events); err != nil {
		k.log.Error("start", "err", err) // cannot happen: the process is new
	}
	startClock(p, k)
	if k.table.held(p) { // born into a tree that is paused
		if k.signals.pause(p, time.Now()); !k.table.held(p) { // and resumed meanwhile
			k.signals.resume(p, time.Now())
		}
	}
	p.wg.Add(1)
	go k.engine.live(p, l) // one per process; ends with the loop; reap waits for it
}

// childName is the name of a child process that was given none.
func childName(parent *Process, n int) string {
	return orDefault(parent.Name(), parent.PID.String()) + "." + strconv.Itoa(n)
}
