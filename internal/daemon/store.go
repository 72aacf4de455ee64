package daemon

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"rnix/internal/config"
	"rnix/internal/recovery"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// store keeps the kernel's histories in a journal.
type store struct {
	journal  *step.Local
	owner    string // who holds the leases, for people
	log      *slog.Logger
	places   chan struct{}  // how many profiles are made at once
	profiles sync.WaitGroup // of the goroutines that make them

	tap   func(types.UUID, *step.Record) // is told of each record; waits for no network
	ended func(types.UUID)               // is told of each run that has ended; does not block

	checkpoints *checkpoints
	secrets     *redact.Set   // are in no record and no file of a history
	every       int           // steps between checkpoints
	after       time.Duration // or so long
}

// maxProfiles is how many profiles are made at once.
const maxProfiles = 2

func newStore(j *step.Local, owner string, cfg config.Checkpoint, log *slog.Logger) *store {
	return &store{journal: j, owner: owner, log: log, places: make(chan struct{}, maxProfiles), checkpoints: newCheckpoints(j, log),
		every: cfg.EverySteps.V, after: time.Duration(cfg.EverySeconds.V) * time.Second}
}

// Ended makes ctx-profile.json of a history, in the background. It can be made again at any time, so a
// failure is only noted.
func (s *store) Ended(id types.UUID) {
	if s.ended != nil {
		s.ended(id)
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

// damagedRecord begins what is said of a history that cannot be read.
const damagedRecord = "its record is damaged"

// close waits until all profiles and checkpoints are made.
func (s *store) close() error { s.profiles.Wait(); s.checkpoints.close(); return nil }

var _ kernel.Store = (*store)(nil)

// Create begins a history.
func (s *store) Create(id types.UUID) (kernel.Recorder, error) {
	ctx := context.Background()
	lease, err := s.journal.Acquire(ctx, id, s.owner)
	if err != nil {
		return nil, err
	}
	return newRecorder(s, id, lease, new(recovery.State)), nil
}

// open takes the lease of a history that exists and reads it. used says that a checkpoint made it
// quicker; damage is what was cut off or could not be read.
func (s *store) open(ctx context.Context, id types.UUID) (_ *recorder, state *recovery.State, used bool, damage string, err error) {
	lease, err := s.journal.Open(ctx, id, s.owner)
	if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
		return nil, nil, false, "", types.Errorf(code, "Resume", id.String(), damagedRecord+": %w; `rnix fsck --repair %s` keeps what is before the damage, and puts the rest aside", err, id)
	}
	if err != nil {
		return nil, nil, false, "", err
	}
	state, used, damage, err = s.read(ctx, id)
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
	return newRecorder(s, id, lease, state.Clone()), state, used, damage, nil
}

// read folds a history.
func (s *store) read(ctx context.Context, id types.UUID) (*recovery.State, bool, string, error) {
	cp, err := step.ReadCheckpoint(s.journal.FS(), s.journal.Dir(id))
	if err != nil || cp.UUID != id {
		cp = nil // it is a shortcut
	}
	return recovery.Read(s.source(ctx, id), cp)
}

func (s *store) source(ctx context.Context, id types.UUID) recovery.Source {
	return func(from uint64) iter.Seq2[step.Record, error] { return s.journal.Replay(ctx, id, from) }
}

// Discard removes a history that never began.
func (s *store) Discard(id types.UUID) error { return s.journal.Discard(id) }

// SaveInfo replaces proc-info.json and the line of the index.
func (s *store) SaveInfo(info step.ProcInfo) error {
	info = info.Concealed(s.secrets)
	return s.journal.PutInfo(&info)
}

// SaveMeta writes process-meta.json.
func (s *store) SaveMeta(id types.UUID, system string, tools []vfs.Tool, model vfs.ModelCard) error {
	m := step.Meta{V: step.FormatVersion, UUID: id, SystemPrompt: s.secrets.String(system)}
	if model.Driver != "" {
		m.Model = &step.ModelDef{Provider: model.Provider, Driver: model.Driver, Model: model.Model, ContextWindow: model.ContextWindow, WindowFrom: model.WindowFrom}
	}
	for _, t := range tools {
		m.Tools = append(m.Tools, step.ToolDef{Name: t.Name, Description: s.secrets.String(t.Description), Schema: s.secrets.JSON(t.Schema),
			Path: t.Path, Op: t.Op, Effect: string(t.Effect), Independent: t.Independent})
	}
	return step.WriteMeta(s.journal.FS(), s.journal.Dir(id), &m)
}

// Steps reads the steps that are on disk.
func (s *store) Steps(id types.UUID) ([]step.StepRecord, error) {
	h, err := step.ReadHistory(context.Background(), s.journal, id)
	if err != nil {
		return nil, err
	}
	return h.Steps, nil
}

// Parent returns which process has started another one, whatever became of both; false if nobody knows.
func (s *store) Parent(id types.UUID) (types.UUID, bool) {
	info, ok := s.journal.Index().Get(id)
	return info.ParentUUID, ok
}

// Ledger reads the calls of a history, as far as it is on disk, for /proc.
func (s *store) Ledger(id types.UUID) ([]step.LedgerEntry, error) {
	h, err := step.ReadHistory(context.Background(), s.journal, id)
	if err != nil {
		return nil, err
	}
	return h.LiveLedger(), nil
}
