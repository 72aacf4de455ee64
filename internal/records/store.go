// Package records keeps the kernel's histories in a journal: who writes one has its lease, what is secret is in none, and checkpoints and
// profiles are made of them in the background.
package records

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"rnix/internal/config"
	"rnix/internal/recovery"
	"rnix/internal/redact"
	"rnix/internal/rights"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Store keeps the kernel's histories in a journal.
type Store struct {
	journal  store.Store
	owner    string // who holds the leases, for people
	log      *slog.Logger
	places   chan struct{}  // how many profiles are made at once
	profiles sync.WaitGroup // of the goroutines that make them

	Tap   func(types.UUID, *step.Record) // is told of each record; waits for no network
	OnEnd func(types.UUID)               // is told of each run that has ended; does not block

	checkpoints *checkpoints
	Secrets     *redact.Set   // are in no record and no file of a history
	Seals       *rights.Seals // of what records say about rights; nil = none are made
	every       int           // steps between checkpoints
	after       time.Duration // or so long
}

// Seal seals what is about to be recorded, as it will be without secrets.
func (s *Store) Seal(was *step.Settled) string {
	if s.Seals == nil {
		return ""
	}
	clean := *was
	clean.Settings = s.Secrets.JSON(was.Settings)
	if was.Body != nil {
		clean.Body = &step.BodyRecord{Kind: was.Body.Kind, Spec: s.Secrets.JSON(was.Body.Spec)}
	}
	return s.Seals.Seal(&clean)
}

// maxProfiles is how many profiles are made at once.
const maxProfiles = 2

// New returns the store over a journal. owner is who holds the leases, for people. Close it when no history is written any more.
func New(j store.Store, owner string, cfg config.Checkpoint, log *slog.Logger) *Store {
	return &Store{journal: j, owner: owner, log: log, places: make(chan struct{}, maxProfiles), checkpoints: newCheckpoints(j.Derived(), log),
		every: cfg.EverySteps.V, after: time.Duration(cfg.EverySeconds.V) * time.Second}
}

// Ended makes ctx-profile.json of a history, in the background. It can be made again at any time, so a
// failure is only noted.
func (s *Store) Ended(id types.UUID) {
	if s.OnEnd != nil {
		s.OnEnd(id)
	}
	s.profiles.Go(func() { // one per ended process; close waits for it
		s.places <- struct{}{}
		defer func() { <-s.places }()
		h, err := step.ReadHistory(context.Background(), s.journal, id)
		if err == nil {
			err = s.profile(h, id)
		}
		if err != nil {
			s.log.Warn("ctx-profile.json", "uuid", id, "err", err)
		}
	})
}

// Damaged begins what is said of a history that cannot be read.
const Damaged = "its record is damaged"

// Close waits until all profiles and checkpoints are made.
func (s *Store) Close() error { s.profiles.Wait(); s.checkpoints.close(); return nil }

var _ kernel.Store = (*Store)(nil)

// Create begins a history.
func (s *Store) Create(id types.UUID) (kernel.Recorder, error) {
	ctx := context.Background()
	lease, err := s.journal.Acquire(ctx, id, s.owner)
	if err != nil {
		return nil, err
	}
	return NewRecorder(s, id, lease, new(recovery.State)), nil
}

// Open takes the lease of a history that exists and reads it. used says that a checkpoint made it
// quicker; damage is what was cut off or could not be read.
func (s *Store) Open(ctx context.Context, id types.UUID) (_ *Recorder, state *recovery.State, used bool, damage string, err error) {
	lease, err := s.journal.Open(ctx, id, s.owner)
	if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
		return nil, nil, false, "", types.Errorf(code, "Resume", id.String(), Damaged+": %w; `rnix fsck --repair %s` keeps what is before the damage, and puts the rest aside", err, id)
	}
	if err != nil {
		return nil, nil, false, "", err
	}
	state, used, damage, err = s.Read(ctx, id)
	if lease.Damage != "" {
		damage = lease.Damage
	}
	if err == nil && state.Seq+1 != lease.Next {
		err = types.Errorf(types.ErrStorage, "Resume", id.String(), "%d records can be read and %d are there: %s", state.Seq, lease.Next-1, damage)
	}
	if err != nil {
		_ = s.journal.Release(context.WithoutCancel(ctx), id, lease.Epoch) // err matters more
		return nil, nil, false, "", err
	}
	return NewRecorder(s, id, lease, state.Clone()), state, used, damage, nil
}

// Read folds a history.
func (s *Store) Read(ctx context.Context, id types.UUID) (*recovery.State, bool, string, error) {
	return recovery.Read(s.Source(ctx, id), s.journal.Derived().Checkpoint(id))
}

// Source returns the records of a history, from the one that is asked for on.
func (s *Store) Source(ctx context.Context, id types.UUID) recovery.Source {
	return func(from uint64) iter.Seq2[step.Record, error] { return s.journal.Replay(ctx, id, from) }
}

// Discard removes a history that never began.
func (s *Store) Discard(id types.UUID) error { return s.journal.Discard(id) }

// SaveInfo replaces proc-info.json and the line of the index.
func (s *Store) SaveInfo(info step.ProcInfo) error {
	info = info.Concealed(s.Secrets)
	return s.journal.Index().Save(&info)
}

// SaveMeta writes process-meta.json.
func (s *Store) SaveMeta(id types.UUID, system string, tools []vfs.Tool, model vfs.ModelCard) error {
	m := step.Meta{V: step.FormatVersion, UUID: id, SystemPrompt: s.Secrets.String(system)}
	if model.Driver != "" {
		m.Model = &step.ModelDef{Provider: model.Provider, Driver: model.Driver, Model: model.Model, ContextWindow: model.ContextWindow, WindowFrom: model.WindowFrom}
	}
	for _, t := range tools {
		m.Tools = append(m.Tools, step.ToolDef{Name: t.Name, Description: s.Secrets.String(t.Description), Schema: s.Secrets.JSON(t.Schema),
			Path: t.Path, Op: t.Op, Effect: string(t.Effect), Independent: t.Independent})
	}
	return s.journal.Blobs().SaveMeta(id, &m)
}

// Steps reads the steps that are on disk.
func (s *Store) Steps(id types.UUID) ([]step.StepRecord, error) {
	h, err := step.ReadHistory(context.Background(), s.journal, id)
	if err != nil {
		return nil, err
	}
	return h.Steps, nil
}

// Parent returns which process has started another one, whatever became of both; false if nobody knows.
func (s *Store) Parent(id types.UUID) (types.UUID, bool) {
	info, ok := s.journal.Index().Get(id)
	return info.ParentUUID, ok
}

// Ledger reads the calls of a history, as far as it is on disk, for /proc.
func (s *Store) Ledger(id types.UUID) ([]step.LedgerEntry, error) {
	h, err := step.ReadHistory(context.Background(), s.journal, id)
	if err != nil {
		return nil, err
	}
	return h.LiveLedger(), nil
}

// Acquire takes the lease of a history that begins.
func (s *Store) Acquire(ctx context.Context, id types.UUID) (step.Lease, error) {
	return s.journal.Acquire(ctx, id, s.owner)
}

// CheckpointFailures returns how many checkpoints could not be written since the daemon started, and why the last one.
func (s *Store) CheckpointFailures() (int, string) { return s.checkpoints.failures() }
