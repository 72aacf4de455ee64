package kernel

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/weigh"
	"rnix/kernel/internal/actions"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
	"rnix/xsync"
)

// kit is what a process may call: its devices' tools and the kernel's own actions. Processes with the
// same rights and no servers of their own share one. It never changes.
type kit struct {
	tools map[string]vfs.Tool
	list  []vfs.Tool // the tools and actions in the order in which they are offered
	names []string   // of the list, sorted
	meta  map[string]loop.Kind
	specs json.RawMessage // the tools and actions as they are offered to a model
	parts []weigh.Part    // of the specs
}

// maxKits bounds how many kits are kept.
const maxKits = 256

// kits makes the kits of processes.
type kits struct {
	tools   []vfs.Tool // of the devices that were registered when the kernel was made
	devices *vfs.DeviceRegistry
	depth   int // how deep families may be
	may     func(*Process) actions.May
	known   xsync.SyncMap[string, *kit]
}

// of returns the kit of a process.
func (ks *kits) of(p *Process) (*kit, error) {
	if len(p.MCPMounts) > 0 || len(p.opts.OutputSchema) > 0 {
		return ks.made(p)
	}
	var without []string
	for i := range ks.tools {
		if t := &ks.tools[i]; !offers(p, t) {
			without = append(without, t.Name)
		}
	}
	key := fmt.Sprintf("%t %t %q %q %q", p.Rights.Allowed == nil, p.depth >= ks.depth, p.Rights.Allowed, p.Rights.Denied, without)
	if kt, ok := ks.known.Load(key); ok {
		return kt, nil
	}
	kt, err := ks.made(p)
	if err == nil && ks.known.Len() < maxKits {
		ks.known.Store(key, kt)
	}
	return kt, err
}

func (ks *kits) made(p *Process) (*kit, error) {
	kt := &kit{tools: map[string]vfs.Tool{}, meta: map[string]loop.Kind{}}
	add := func(tools []vfs.Tool) {
		for _, t := range tools {
			if _, taken := kt.tools[t.Name]; taken || mayOpen(p, t.Path) != nil {
				continue
			}
			kt.tools[t.Name] = t
			if offers(p, &t) {
				kt.list = append(kt.list, t)
			}
		}
	}
	add(ks.tools)
	for _, m := range p.MCPMounts {
		add(ks.devices.Tools(m))
	}
	may := ks.may(p)
	for _, kind := range loop.Kinds {
		if !may.Offers(kind) {
			continue
		}
		spec := loop.Meta[kind]
		if kind == loop.Complete {
			spec = bringing(spec, p.opts.OutputSchema)
		}
		kt.meta[spec.Name] = kind
		kt.list = append(kt.list, asTool(kind, &spec))
	}
	specs := make([]loop.ToolSpec, len(kt.list))
	for i, t := range kt.list {
		kt.names, specs[i] = append(kt.names, t.Name), loop.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
		part, err := ks.weighs(&specs[i], t.Path, p)
		if err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Spawn", t.Name, "tools: %w", err)
		}
		kt.parts = append(kt.parts, part)
	}
	slices.Sort(kt.names)
	var err error
	if kt.specs, err = json.Marshal(specs); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Spawn", "", "tools: %w", err)
	}
	return kt, nil
}

// asTool is one of the kernel's own actions as the tool that a model sees.
func asTool(kind loop.Kind, spec *loop.ToolSpec) vfs.Tool {
	return vfs.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema, Path: actions.Paths[kind],
		Effect: cmp.Or(actions.Effects[kind], vfs.EffectNone), Independent: kind == loop.Spawn}
}

// deviceTools returns the tools of the devices, without those of MCP servers, which are one process's each.
func deviceTools(devices *vfs.DeviceRegistry) (out []vfs.Tool) {
	for _, path := range devices.Paths() {
		if !vfs.Below(path, mcpRoot) {
			out = append(out, devices.Tools(path)...)
		}
	}
	return out
}

// AllTools returns the tools of the devices and then the kernel's own actions, in the order in which they are offered. Which of them a process has
// depends on its rights.
func AllTools(devices *vfs.DeviceRegistry) []vfs.Tool {
	out := deviceTools(devices)
	for _, kind := range loop.Kinds {
		spec := loop.Meta[kind]
		out = append(out, asTool(kind, &spec))
	}
	return out
}

// weighs bounds the tokens of a tool. Ours are plain English in JSON: those of the kernel's own actions were counted to have a quarter of a token for a byte at most,
// and half of one is taken. Those of others, as of a server, are bounded by their bytes.
func (ks *kits) weighs(spec *loop.ToolSpec, path string, p *Process) (weigh.Part, error) {
	b, err := json.Marshal(spec)
	if err != nil {
		return weigh.Part{}, err
	}
	part := weigh.Of(b)
	if bringing := spec.Name == loop.Meta[loop.Complete].Name && len(p.opts.OutputSchema) > 0; !bringing && !slices.ContainsFunc(p.MCPMounts, func(mount string) bool { return vfs.Below(path, mount) }) {
		part.Most = (part.Most + 1) / 2
	}
	return part, nil
}

// offers reports whether a process that may open the path of a tool is offered it.
func offers(p *Process, t *vfs.Tool) bool { return t.Offered == nil || t.Offered(p.opts.Profile) }

// offered is what a process may call now: its kit, or the one since a person has reloaded a server of it.
func offered(p *Process) *kit {
	if kt := p.renewed.Load(); kt != nil {
		return kt
	}
	return p.kit
}

// equip settles what a process is told and may do: system prompt, tools, loop.
func equip(ctx context.Context, k *KernelImpl, p *Process, ag *agent.Agent) (*loop.Loop, string, error) {
	var err error
	if p.kit, err = k.kits.of(p); err != nil {
		return nil, "", err
	}
	p.tools = p.kit.names
	if p.opts.From == nil {
		instruct(p, ag, k.cfg.Secrets)
	}
	lookAround(ctx, k, p)
	system, _, _ := prompted(p)
	var open *loop.Open
	var end *loop.End
	progress := loop.Progress{Provider: p.opts.Provider, Model: orDefault(p.opts.Model, p.model.Model)}
	if f := p.opts.From; f != nil {
		progress, open, end = f.start(progress), f.open(k.cfg.Workspace.Keeps()), f.end()
		if open != nil {
			p.answered = open.Answer.Started
		}
		account{k.budgets, p}.recall(f.State)
	}
	p.progress = progress // +checklocksignore: no other goroutine knows the process yet
	l, err := loop.New(loop.Config{
		Head: loop.Head{Intent: p.Intent, SystemPrompt: system, Model: p.opts.Model, MaxTurns: 1, Effort: p.opts.Effort,
			Session: p.UUID.String(), WorkDir: p.WorkDir},
		Now: present{p}, Specs: p.kit.specs, Weight: p.kit.parts, Tools: p.kit.tools, Meta: p.kit.meta, MaxSteps: p.MaxSteps, FailStop: p.opts.FailedSteps, Budget: account{k.budgets, p}, Several: len(p.model.Others) > 0,
		Window: p.model.ContextWindow, Aside: p.model.Aside, Compactor: compactor{host{asking{postman{k, p}}}}, StepTimeout: p.stepTimeout, Open: open, End: end, Thread: threadsOf(k, p), Completed: p.asks.completed, Accept: fitting(p.opts.OutputSchema),
	}, progress, host{asking{postman{k, p}}})
	if err != nil {
		return nil, "", types.Errorf(types.ErrInvalid, "Spawn", "", "request: %w", err)
	}
	return l, system, nil
}

// present is what the loop of a process sees of what changes.
type present struct{ p *Process }

var _ loop.Now = present{}

// System implements loop.Now.
func (n present) System() string { system, _, _ := prompted(n.p); return system }

// Offer implements loop.Now.
func (n present) Offer() loop.Offered {
	kt := offered(n.p)
	return loop.Offered{Specs: kt.specs, Weight: kt.parts, Tools: kt.tools}
}

// Plan implements loop.Now.
func (n present) Plan() string { return planOf(n.p) }

// Stood implements loop.Now.
func (n present) Stood() time.Duration { return n.p.gate.Paused(time.Now()) }

// Run performs one action of the model.
func (h host) Run(ctx context.Context, a *loop.Action) (string, error) {
	defer patient(h.p, a.Kind)()
	now := time.Now()
	in := takeUp(h.p, a, now)
	h.k.doing.setWaitAt(h.p, waiting{tool: inHand(a), since: now}, now)
	h.k.doing.logCall(h.p, a)
	defer h.k.doing.touch(h.p)
	defer putDown(h.p, in)
	switch a.Kind {
	case loop.ToolCall:
		text, given, err := h.k.fds.runTool(ctx, h.p, a)
		if err == nil && len(given) > 0 {
			text, a.Attachments = h.attach(text, given)
		}
		return text, err
	case loop.Spawn: // traces the start and the wait, each for itself
		return h.k.actions.run(ctx, h.p, a, "")
	}
	c := h.k.tracer.call(h.p, actions.Calls[a.Kind], "")
	return c.does(a.Kind == loop.Wait || a.Kind == loop.Recv, h.k.tracer.brief(string(a.Call.Input)), func() (string, error) {
		key := ""
		if a.Kind == loop.Send {
			key = h.key(a)
		}
		return h.k.actions.run(ctx, h.p, a, key)
	})
}

// Complete implements loop.Host.
func (h host) Complete(a *loop.Action, err error) {
	c := h.k.tracer.call(h.p, actions.Calls[a.Kind], "")
	c.ends(h.k.tracer.brief(string(a.Call.Input)), "", err)
}

// inHand names an action in a few words, with what it acts on.
func inHand(a *loop.Action) string {
	for _, key := range []string{"command", "path", "pattern", "intent", "text", "signal", "question", "url"} {
		if s := a.Field(key); s != "" {
			first, _, _ := strings.Cut(s, "\n")
			return a.Call.Name + " " + rnixctx.Elide(first, traceMax)
		}
	}
	return a.Call.Name
}

// runTool performs a tool: open, write the input, read the answer with what is attached to it, close.
func (c *descriptors) runTool(ctx context.Context, p *Process, a *loop.Action) (text string, attached []vfs.Attachment, err error) {
	fd, err := c.open(p, a.Tool.Path, vfs.OpenReadWrite)
	if err != nil {
		return "", nil, err
	}
	defer c.close(p, fd, a.Tool.Path)
	f, ferr := c.vfs.File(p.PID, fd)
	if ferr == nil {
		defer c.listen(p, f)()
	}
	if err := c.write(ctx, p, fd, a.Tool.Path, a.Tool.Input(a.Call.Input)); err != nil {
		return string(c.rest(p, fd, a.Tool.Path)), nil, err // what there is of an answer helps the model
	}
	out, err := c.read(p, fd, a.Tool.Path)
	if at, ok := f.(vfs.Attacher); ok && err == nil {
		attached = at.Attachments()
	}
	return string(out), attached, err
}
