package kernel

import (
	"cmp"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	"rnix/internal/redact"
	"rnix/internal/schema"
	"rnix/internal/step"
	"rnix/types"
)

// maxIntent bounds an intent, in bytes: it is shown by every listing, and written several times.
const maxIntent = 1 << 20

// nobody is the agent of a process without one.
var nobody = &agent.Agent{}

// settle makes the process object: every value that does not need a resource. Nobody else knows it yet.
func (b *birth) settle(intent string, opts SpawnOpts) (err error) {
	k := b.k
	if err := sound(intent, &opts, k.cfg.Secrets); err != nil {
		return err
	}
	if b.ag == nil {
		b.ag = nobody
	}
	intent = k.conceal(intent, &opts)
	if opts.ParentPID != 0 {
		if b.parent, err = k.table.lookup("Spawn", opts.ParentPID); err != nil {
			return err
		}
	}
	p := newProcess(intent, b.ag, opts)
	if k.mail.records(p) {
		p.box.Max = 4 * mailMax // the post keeps the bound
	}
	if opts.From != nil {
		p.trees = k.cfg.Workspace.Trees(p.UUID) // +checklocksignore: nobody knows the process yet
	}
	p.BlockedSignals, p.OnInterrupt = b.ag.BlockedSignals, k.cfg.Secrets.String(b.ag.OnInterrupt)
	b.p = p
	if b.parent != nil {
		descendFrom(p, b.parent)
	}
	if err := b.entitle(); err != nil {
		return err
	}
	return liveable(p)
}

// sound refuses what cannot be meant, or that no process may be started with.
func sound(intent string, opts *SpawnOpts, secrets *redact.Set) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Spawn", "", format, args...)
	}
	switch {
	case strings.TrimSpace(intent) == "":
		return bad("the intent is empty")
	case len(intent) > maxIntent:
		return bad("the intent has %d bytes and at most %d are taken: put the text into a file and tell the agent to read it", len(intent), maxIntent)
	}
	if err := step.CheckInputs(opts.Inputs); err != nil {
		return err
	}
	if err := opts.Labels.Check(); err != nil {
		return bad("%w", err)
	}
	if len(opts.OutputSchema) > 0 && opts.From == nil {
		if _, err := schema.Parse(opts.OutputSchema); err != nil {
			return bad("the output schema: %w", err)
		}
	}
	if err := noSecretIn(secrets, opts); err != nil {
		return err
	}
	if err := CheckAttachments("Spawn", opts.Attachments); err != nil {
		return err
	}
	switch from := opts.From; {
	case from == nil:
	case len(opts.Inputs) > 0:
		return bad("a resumed history has the inputs that it began with: give From.Input")
	case len(opts.Attachments) > 0 && from.Input == "":
		return bad("files are attached to what is said, and nothing is: give From.Input")
	}
	return nil
}

// newProcess is a process as the call and the agent have it.
func newProcess(intent string, ag *agent.Agent, opts SpawnOpts) *Process {
	p := &Process{
		UUID: opts.UUID, opts: opts,
		card: &card{Intent: intent, Agent: ag.Name, Labels: maps.Clone(opts.Labels), Sandbox: opts.Sandbox, Net: opts.Net, CreatedAt: time.Now(), WorkDir: opts.WorkDir, ReadRoots: opts.ReadRoots, Schema: len(opts.OutputSchema) > 0, modelPath: modelPath(opts)},
		left: make(chan struct{}), gone: make(chan struct{}),
	}
	p.call(opts.Name)
	if p.UUID == (types.UUID{}) {
		p.UUID = types.NewUUID()
	}
	settleStall(p, ag)
	p.MaxSteps = DefaultMaxSteps
	for _, n := range []*int{ag.MaxSteps, opts.MaxSteps} { // the later wins, an explicit zero too
		if n != nil {
			p.MaxSteps = max(*n, 0)
		}
	}
	p.opts.Effort = cmp.Or(opts.Effort, ag.Models.ReasoningEffort)
	return p
}

// descendFrom makes a process that nobody knows yet the child of another, from which it has what it was not given.
func descendFrom(p, parent *Process) {
	p.rel.parent = parent // not yet visible, so no lock
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

// entitle settles the rights of a process: at most those of who starts it. One that goes on has what its history says.
func (b *birth) entitle() error {
	p, ag, opts, outer := b.p, b.ag, &b.p.opts, Rights{}
	if opts.From == nil && !opts.Recorded {
		if err := b.k.CheckDevices(append(slices.Clone(ag.Devices), opts.AllowedDevices...), opts.DeniedDevices); err != nil {
			return err
		}
	}
	if err := mayHave(b.k.table, p, b.parent); err != nil {
		return err
	}
	if b.parent != nil {
		outer = b.parent.Rights
	}
	p.Rights = Rights{}.Narrow(ag.Devices).Narrow(opts.AllowedDevices).Without(opts.DeniedDevices).Within(outer)
	p.began, p.runs = p.CreatedAt, 0
	if opts.From != nil {
		opts.From.take(p)
	}
	p.runs++
	return nil
}

// liveable refuses a process that has no place to work, or no model, and makes its context.
func liveable(p *Process) error {
	if p.WorkDir != "" && !filepath.IsAbs(p.WorkDir) {
		return types.Errorf(types.ErrInvalid, "Spawn", p.WorkDir, "the working directory is not an absolute path")
	}
	if p.opts.Provider == "" && p.opts.Body == nil {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "no provider was chosen")
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return nil
}
