package flows

import (
	"context"
	"log/slog"
	"path/filepath"
	"rnix/internal/initfile"
	"rnix/internal/step"
	"rnix/internal/supervisor"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
	"slices"
	"strings"
)

// Init starts what init.yaml says, and ends what it says no more. Its exported fields are set before it is read.
type Init struct {
	Flows *Service
	Boot  *Boot
	Dir   string // of the file
	Home  string // in which relative paths begin
	// Profile reads the configuration with which it starts processes.
	Profile func() (Profile, error)
	// Note tells people what was found, and Misread what is wrong in the file.
	Note    func(format string, args ...any)
	Misread func(what string)
	Log     *slog.Logger

	file *initfile.File // nil = there is none, or it cannot be read
	p    Profile
}

// unstartable is the error about a required supervisor that cannot be started.
func unstartable(name string, err error) error {
	return types.Errorf(types.ErrUnavailable, "Start", initfile.Name, "the supervisor %q is required and cannot be started: %w", name, err)
}

// Read reads init.yaml. What is wrong with it is a warning, unless something that is required cannot be started.
func (d *Init) Read() {
	path := filepath.Join(d.Dir, initfile.Name)
	src, err := yamlfile.ReadFixed(path, MaxFile+1)
	if yamlfile.Missing(err) {
		d.file = initfile.Parse(nil, path)
		return
	}
	if err == nil {
		d.p, err = d.Profile()
	}
	if err != nil {
		d.Boot.fail(types.Errorf(types.ErrUnavailable, "Start", path, "what is to be kept running cannot be read: %w", yamlfile.Cause(err)), d.Log)
		return
	}
	f := initfile.Parse(src, path)
	home, _ := d.p.Lookup("HOME")
	f.Settle(d.Home, home)
	whole := f.Whole()
	if len(whole) == 0 {
		d.file = f
		for i := range f.Supervisors {
			if !f.Bad(i) {
				Examine(d.p, f, i)
			}
		}
	}
	for _, p := range f.Problems() {
		d.Log.Warn("init", "what", p.String())
		if p.Warning || len(whole) > 0 || !strings.HasPrefix(p.Key, "supervisors[") { // others are told with their supervisor
			d.Misread(p.String())
		}
	}
	if len(whole) > 0 && initfile.SaysRequired(src) {
		d.Boot.fail(types.Errorf(types.ErrUnavailable, "Start", initfile.Name, "something is required and cannot be read: %w", whole), d.Log)
	}
	for i := range f.Supervisors {
		if s := &f.Supervisors[i]; len(whole) == 0 && f.Bad(i) && s.Required {
			d.Boot.fail(unstartable(s.Name, f.Problems().Under(initfile.Key(i)).Errors()), d.Log)
		}
	}
}

// requires reports whether the daemon must not be without something.
func (d *Init) requires() bool {
	return d.file != nil && slices.ContainsFunc(d.file.Supervisors, func(s initfile.Supervisor) bool { return s.Required })
}

// retire ends on disk the supervisors of init.yaml that it does not have any more, or not as they were: before anything
// of them goes on.
func (d *Init) retire(ctx context.Context) {
	if d.file == nil { // nobody knows what it says
		return
	}
	for _, info := range d.Flows.Index.Open() {
		if info.Kind != supervisor.Kind || info.ParentUUID != (types.UUID{}) || ctx.Err() != nil {
			continue
		}
		was, err := d.Flows.Supervisors().Declared(ctx, info.UUID)
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
		if err := d.Flows.Stored.Dismiss(ctx, info.UUID, "terminated: "+why); err != nil {
			d.Note("the supervisor %q (PID %d) was to be ended, since %s: %v", info.Name, info.PID, why, err)
			continue
		}
		d.Note("the supervisor %q (PID %d, %s) is ended with its children: %s", info.Name, info.PID, info.UUID, why)
	}
}

// index returns where a supervisor stands in the file; -1 = nowhere.
func (d *Init) index(name string) int {
	return slices.IndexFunc(d.file.Supervisors, func(s initfile.Supervisor) bool { return s.Name == name })
}

// same reports whether a history is that of a supervisor of the file, as it stands there.
func (d *Init) same(ctx context.Context, id types.UUID, i int) (bool, error) {
	return d.Flows.Supervisors().Same(ctx, id, &Declared{Init: true, Spec: d.file.Supervisors[i]})
}

// start starts the supervisors of the file, in its order, or lets them go on. An error means that one that is required
// cannot be started.
func (d *Init) start(ctx context.Context) error {
	if d.file == nil {
		return d.Boot.Failed()
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
		d.Boot.put(item)
		switch {
		case err != nil && s.Required:
			d.Boot.fail(unstartable(s.Name, err), d.Log)
			return d.Boot.Failed()
		case err != nil:
			d.Log.Warn("init", "supervisor", s.Name, "err", err)
		default:
			d.Log.Info("init", "supervisor", s.Name, "pid", item.PID, "how", item.How)
		}
	}
	return nil
}

// one starts one supervisor, or lets it go on.
func (d *Init) one(ctx context.Context, i int) (types.PID, string, error) {
	decl := &Declared{Init: true, Spec: d.file.Supervisors[i]}
	for _, info := range d.Flows.Index.Open() {
		if info.Name != decl.Spec.Name || info.Kind != supervisor.Kind || info.ParentUUID != (types.UUID{}) {
			continue
		}
		if same, err := d.same(ctx, info.UUID, i); err != nil || !same {
			continue
		}
		if i, alive := d.Flows.Kernel.InfoOf(info.UUID); alive {
			return i.PID, "goes on", nil
		}
		return d.again(ctx, info)
	}
	pid, was, err := d.Flows.Supervisors().Start(ctx, d.p, decl, 0)
	if was {
		return pid, "goes on", err
	}
	return pid, "started", err
}

// again lets a suspended supervisor go on, unless a person has paused it.
func (d *Init) again(ctx context.Context, info step.ProcInfo) (types.PID, string, error) {
	if info.Why() == types.SuspendPaused {
		return info.PID, "paused", nil
	}
	pid, err := d.Flows.Stored.Resume(ctx, info.UUID, &ipc.ResumeRequest{})
	if types.CodeOf(err) == types.ErrConflict { // somebody was quicker
		if i, alive := d.Flows.Kernel.InfoOf(info.UUID); alive {
			return i.PID, "goes on", nil
		}
	}
	return pid, "goes on", err
}

// Run retires what the file says no more, has goOn resume what an earlier daemon has left, closes looked, starts what the file says, and tells over
// whether the daemon can start: if it cannot, goOn may not have been called. Nobody who waits for the start goes on before over returns. It runs beside
// the handlers, from the moment in which they answer.
func (d *Init) Run(ctx context.Context, goOn func(), looked chan struct{}, over func(ok bool)) {
	err := d.Boot.Failed()
	if waits := err != nil || d.requires(); waits {
		defer close(d.Boot.done)
	} else {
		close(d.Boot.done)
	}
	if err == nil {
		d.retire(ctx)
		goOn()
	}
	close(looked)
	if err == nil {
		err = d.start(ctx)
	}
	over(err == nil)
}
