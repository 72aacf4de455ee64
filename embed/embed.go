// Package embed makes a kernel for a program of its own. Its agents run as those of rnix do, without a daemon: their histories are on
// disk, what was cut off goes on where it was, secrets are in nothing that is kept or shown, and a second model answers when the first cannot.
//
//	sys, err := embed.Open(embed.Options{Dir: "agents", Models: []llm.LLMDriver{driver}})
//	...
//	defer sys.Close(ctx)
//	_, err = sys.Resume(ctx)                                        // what an earlier run has left
//	pid, err := sys.Kernel.Spawn("Count the files", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: driver.Info().Name}})
//	exit, err := sys.Kernel.Wait(pid)
//
// What it keeps is what rnix keeps, in the same files: docs/format.md describes them. It takes no snapshots of files, mounts no MCP servers
// and asks nobody; a program that needs these gives its own devices, Workspace and Catalog.
package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/records"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Options say what a system is made of. The zero value has no models and keeps nothing.
type Options struct {
	// Dir is where histories are kept; it is made if it is missing. One process has it at a time: for a second one Open fails with CONFLICT.
	// Empty: nothing is kept, and nothing can be resumed.
	Dir string
	// Models are served at /dev/llm/<name of the driver>. Each is the fallback of any other for which SpawnOpts names it.
	Models []llm.LLMDriver
	// Devices registers more devices, such as those of drivers/fs; nil: there are none but the models and /proc.
	Devices func(*vfs.DeviceRegistry) error
	// Secrets by name: their values are replaced in records, in the event log, in what models are told and in what people are shown. One of fewer
	// than eight bytes is INVALID: it would be found in ordinary text.
	Secrets map[string]string
	// Catalog finds agents, skills and prices; nil: there are none.
	Catalog kernel.Catalog
	// Workspace keeps the files of processes; nil: nobody does.
	Workspace kernel.Workspace
	Limits    kernel.Limits
	Log       *slog.Logger // nil: discarded
	// Callbacks is told what happens to processes; it may be nil.
	Callbacks kernel.KernelCallbacks
}

// System is a kernel with what it needs. Close it. Safe for concurrent use.
type System struct {
	Kernel  *kernel.KernelImpl
	secrets *redact.Set
	events  *event.Log
	journal store.Opened // nil: nothing is kept
	pids    *durable.Counter
	records *records.Store // nil: nothing is kept
}

// Open makes a system. Nothing runs until Spawn or Resume is called.
func Open(o Options) (_ *System, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &System{secrets: new(redact.Set), events: event.New(0)}
	if err := s.Conceal(o.Secrets); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeRecords())
		}
	}()
	devices := vfs.NewDeviceRegistry()
	if err := devices.Register("/dev/llm", newModels(o.Models).open); err != nil {
		return nil, err
	}
	if o.Devices != nil {
		if err := o.Devices(devices); err != nil {
			return nil, err
		}
	}
	cfg := kernel.Config{Devices: devices, Contexts: rnixctx.NewManager(), Events: s.events, Secrets: s.secrets, Log: o.Log,
		Limits: o.Limits, Catalog: o.Catalog, Workspace: o.Workspace}
	if o.Dir != "" {
		if cfg.Lifecycle, err = s.keep(&o); err != nil {
			return nil, err
		}
		cfg.Store = s.records
	}
	s.Kernel = kernel.New(cfg, o.Callbacks)
	return s, devices.Register("/proc", vfs.NewProcFS(s.Kernel.Proc(), s.Kernel.VFS()).Open)
}

// Conceal adds secrets, from now on; see Options.Secrets. INVALID if one cannot be concealed: those that can are.
func (s *System) Conceal(secrets map[string]string) error {
	var errs []error
	for name, value := range secrets {
		if n := len(strings.TrimSpace(value)); n < redact.MinLen || n > redact.MaxLen {
			errs = append(errs, types.Errorf(types.ErrInvalid, "Conceal", name, "it has %d bytes; a secret of fewer than %d or more than %d cannot be found in texts", n, redact.MinLen, redact.MaxLen))
		}
		s.secrets.Add(redact.Secret{Name: name, Value: value})
	}
	return errors.Join(errs...)
}

// keep opens the histories.
func (s *System) keep(o *Options) (kernel.Lifecycle, error) {
	files, err := store.Open(durable.OS, o.Dir, step.Synced)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", o.Dir, err)
	}
	s.journal = files
	if s.pids, err = files.PIDs(); err != nil {
		return nil, err
	}
	every := config.Checkpoint{EverySteps: config.Value[int]{V: config.DefaultCheckpointSteps}}
	s.records = records.New(s.journal, "rnix/embed", every, o.Log)
	s.records.Secrets = s.secrets
	return &life{sys: s}, nil
}

// Close suspends what runs, and gives the directory back. It ends nobody: the next Open and Resume let them go on. If ctx ends first, the directory
// is given back all the same, with an error.
func (s *System) Close(ctx context.Context) error {
	return errors.Join(s.Kernel.Shutdown(ctx), s.closeRecords())
}

func (s *System) closeRecords() error {
	s.events.Close()
	if s.journal == nil {
		return nil
	}
	if s.records != nil {
		_ = s.records.Close() // it waits, and fails never
	}
	var err error
	if s.pids != nil {
		err = s.pids.Settle()
	}
	return errors.Join(err, s.journal.Close())
}
