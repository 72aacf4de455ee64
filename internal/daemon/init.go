package daemon

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/internal/durable"
	"rnix/internal/initfile"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// initer starts what init.yaml says, and ends what it says no more.
type initer struct {
	*Daemon
	file *initfile.File // nil = there is none, or it cannot be read
	p    *profile.Profile
}

// boot is how far that has come. Its lock is a leaf.
type boot struct {
	done chan struct{} // closed when what is required runs, or cannot

	mu sync.Mutex
	// +checklocks:mu
	err   error                // something that is required cannot be started
	items []ipc.InitSupervisor // +checklocks:mu
}

func newBoot() *boot { return &boot{done: make(chan struct{})} }

// put notes what has become of a supervisor.
func (b *boot) put(i ipc.InitSupervisor) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items = append(b.items, i)
}

// all returns what was noted, in the order of the file.
func (b *boot) all() []ipc.InitSupervisor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.items)
}

func (b *boot) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// wait waits until everything runs that the daemon must not be without. It fails if that cannot be.
func (b *boot) wait(ctx context.Context) error {
	select {
	case <-b.done:
	case <-ctx.Done():
		return types.Errorf(types.ErrUnavailable, "Ensure", "", "the daemon is still starting what init.yaml requires; try again in a moment")
	}
	if err := b.failed(); err != nil {
		return types.Errorf(types.ErrUnavailable, "Ensure", "", "the daemon does not start: %s", failureText(err))
	}
	return nil
}

// fail ends the start of the daemon.
func (d initer) fail(err error) {
	d.log.Error("start", "err", err)
	d.bootstrap.mu.Lock()
	first := d.bootstrap.err == nil
	if first {
		d.bootstrap.err = err
	}
	d.bootstrap.mu.Unlock()
	if first {
		if werr := ipc.WriteStartFailure(d.places.DataDir, failureText(err)); werr != nil {
			d.log.Warn("start", "err", werr)
		}
	}
}

// noteFailure notes why a daemon does not start, if err says so. Where that cannot be written, err says as much.
func noteFailure(d *Daemon, err error) {
	if err != nil {
		_ = ipc.WriteStartFailure(d.places.DataDir, failureText(err))
	}
}

// failureText says why a daemon does not start, without the operation: it names the place or the thing first.
func failureText(err error) string {
	text := err.Error()
	if s := new(types.SyscallError); errors.As(err, &s) {
		text = strings.TrimPrefix(strings.TrimPrefix(text, s.Syscall), ": ")
	}
	return strings.TrimSpace(text)
}

// unstartable is the error about a required supervisor that cannot be started.
func unstartable(name string, err error) error {
	return types.Errorf(types.ErrUnavailable, "Start", initfile.Name, "the supervisor %q is required and cannot be started: %w", name, err)
}

// readInit reads init.yaml. What is wrong with it is a warning, unless something that is required cannot be started.
func readInit(d *Daemon) initer {
	in := initer{Daemon: d}
	path := filepath.Join(d.configDir, initfile.Name)
	src, err := yamlfile.ReadFile(path, flows.MaxFile+1)
	if yamlfile.Missing(err) {
		in.file = initfile.Parse(nil, path)
		return in
	}
	if err == nil {
		in.p, err = d.profiles.Read(d.home, nil, false)
	}
	if err != nil {
		in.fail(types.Errorf(types.ErrUnavailable, "Start", path, "what is to be kept running cannot be read: %w", yamlfile.Cause(err)))
		return in
	}
	f := initfile.Parse(src, path)
	home, _ := in.p.Lookup("HOME")
	f.Settle(d.home, home)
	whole := f.Whole()
	if len(whole) == 0 {
		in.file = f
		for i := range f.Supervisors {
			if !f.Bad(i) {
				flows.Examine(flowProfile{d, in.p}, f, i)
			}
		}
	}
	for _, p := range f.Problems() {
		d.log.Warn("init", "what", p.String())
		if p.Warning || len(whole) > 0 || !strings.HasPrefix(p.Key, "supervisors[") { // others are told with their supervisor
			d.misread = append(d.misread, p.String())
		}
	}
	if len(whole) > 0 && initfile.SaysRequired(src) {
		in.fail(types.Errorf(types.ErrUnavailable, "Start", initfile.Name, "something is required and cannot be read: %w", whole))
	}
	for i := range f.Supervisors {
		if s := &f.Supervisors[i]; len(whole) == 0 && f.Bad(i) && s.Required {
			in.fail(unstartable(s.Name, f.Problems().Under(initfile.Key(i)).Errors()))
		}
	}
	return in
}

// requires reports whether the daemon must not be without something.
func (d initer) requires() bool {
	return d.file != nil && slices.ContainsFunc(d.file.Supervisors, func(s initfile.Supervisor) bool { return s.Required })
}

// retire ends on disk the supervisors of init.yaml that it does not have any more, or not as they were: before anything
// of them goes on.
func (d initer) retire(ctx context.Context) {
	if d.file == nil { // nobody knows what it says
		return
	}
	for _, info := range d.journal.Index().Open() {
		if info.Kind != kernel.SupervisorKind || info.ParentUUID != (types.UUID{}) || ctx.Err() != nil {
			continue
		}
		was, err := d.flows.Supervisors().Declared(ctx, info.UUID)
		if err != nil || !was.Init {
			continue // resuming it says what is wrong with it
		}
		why := "it is not in init.yaml any more"
		if i := d.index(was.Spec.Name); i >= 0 {
			if same, serr := d.same(ctx, info.UUID, i); serr != nil || same || d.file.Bad(i) {
				continue
			}
			why = "init.yaml says something else of it now"
		}
		if err := d.stored.Dismiss(ctx, info.UUID, "terminated: "+why); err != nil {
			d.note("the supervisor %q (PID %d) was to be ended, since %s: %v", info.Name, info.PID, why, err)
			continue
		}
		d.note("the supervisor %q (PID %d, %s) is ended with its children: %s", info.Name, info.PID, info.UUID, why)
	}
}

// index returns where a supervisor stands in the file; -1 = nowhere.
func (d initer) index(name string) int {
	return slices.IndexFunc(d.file.Supervisors, func(s initfile.Supervisor) bool { return s.Name == name })
}

// same reports whether a history is that of a supervisor of the file, as it stands there.
func (d initer) same(ctx context.Context, id types.UUID, i int) (bool, error) {
	return d.flows.Supervisors().Same(ctx, id, &flows.Declared{Init: true, Spec: d.file.Supervisors[i]})
}

// start starts the supervisors of the file, in its order, or lets them go on. An error means that one that is required
// cannot be started.
func (d initer) start(ctx context.Context) error {
	if d.file == nil {
		return d.bootstrap.failed()
	}
	for i := range d.file.Supervisors {
		s := &d.file.Supervisors[i]
		item := ipc.InitSupervisor{Name: s.Name, Required: s.Required}
		var err error
		if d.file.Bad(i) {
			err = d.file.Problems().Under(initfile.Key(i)).Errors()
		} else {
			item.PID, item.How, err = d.one(ctx, i)
		}
		if ctx.Err() != nil {
			return nil // the daemon stops
		}
		if err != nil {
			item.How, item.Error = "failed", err.Error()
		}
		d.bootstrap.put(item)
		switch {
		case err != nil && s.Required:
			d.fail(unstartable(s.Name, err))
			return d.bootstrap.failed()
		case err != nil:
			d.log.Warn("init", "supervisor", s.Name, "err", err)
		default:
			d.log.Info("init", "supervisor", s.Name, "pid", item.PID, "how", item.How)
		}
	}
	return nil
}

// one starts one supervisor, or lets it go on.
func (d initer) one(ctx context.Context, i int) (types.PID, string, error) {
	decl := &flows.Declared{Init: true, Spec: d.file.Supervisors[i]}
	for _, info := range d.journal.Index().Open() {
		if info.Name != decl.Spec.Name || info.Kind != kernel.SupervisorKind || info.ParentUUID != (types.UUID{}) {
			continue
		}
		if same, err := d.same(ctx, info.UUID, i); err != nil || !same {
			continue
		}
		if pid, alive := d.stored.Running(info.UUID); alive {
			return pid, "goes on", nil
		}
		return d.again(ctx, info)
	}
	pid, was, err := d.flows.Supervisors().Start(ctx, flowProfile{d.Daemon, d.p}, decl, 0)
	if was {
		return pid, "goes on", err
	}
	return pid, "started", err
}

// again lets a suspended supervisor go on, unless a person has paused it.
func (d initer) again(ctx context.Context, info step.ProcInfo) (types.PID, string, error) {
	if info.SuspendReason == step.ReasonPaused {
		return info.PID, "paused", nil
	}
	resp, err := d.lifecycle.Resumer.Continued(ctx, service.Target{UUID: info.UUID, PID: info.PID, Info: &info}, &ipc.ResumeRequest{}, nil)
	if types.CodeOf(err) == types.ErrConflict { // somebody was quicker
		if pid, alive := d.stored.Running(info.UUID); alive {
			return pid, "goes on", nil
		}
	}
	return resp.PID, "goes on", err
}

// run does all of that: goOn lets go on what an earlier daemon has left, and is called unless the start has failed
// already. It runs beside the handlers, from the moment in which they answer.
func (d initer) run(ctx context.Context, goOn func()) {
	err := d.bootstrap.failed()
	if waits := err != nil || d.requires(); waits {
		defer close(d.bootstrap.done)
	} else {
		close(d.bootstrap.done)
	}
	if err == nil {
		d.retire(ctx)
		goOn()
	}
	close(d.looked)
	if err == nil {
		err = d.start(ctx)
	}
	if err != nil {
		d.stop()
		return
	}
	if ctx.Err() == nil {
		if cerr := ipc.ClearStartFailure(d.places.DataDir); cerr != nil && !errors.Is(cerr, context.Canceled) && !durable.Unwritable(cerr) {
			d.log.Warn("start", "err", cerr)
		}
	}
}

// tend begins what looks after processes while the daemon runs.
func (d initer) tend(ctx context.Context) {
	if d.auto.Max > 0 {
		d.background.Go(func() { d.auto.Wake(ctx) }) // ends with ctx
	}
	d.background.Go(func() { d.auto.Follow(ctx) }) // ends with ctx
	if len(d.retention) == 0 {
		d.background.Go(func() { d.collector.Run(ctx) }) // ends with ctx
	}
}

// takeUp goes on in the background with what an earlier daemon has left, and starts what init.yaml says.
func (d initer) takeUp(ctx context.Context) {
	d.background.Go(func() { d.run(ctx, func() { d.auto.GoOn(ctx) }) }) // ends with ctx
}
