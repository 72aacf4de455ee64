package daemon

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

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
}

// maxProfiles is how many profiles are made at once.
const maxProfiles = 2

func newStore(j *step.Local, owner string, log *slog.Logger) *store {
	return &store{journal: j, owner: owner, log: log, places: make(chan struct{}, maxProfiles)}
}

// Ended makes ctx-profile.json of a history, in the background. It can be made again at any time, so a
// failure is only noted.
func (s *store) Ended(id types.UUID) {
	s.profiles.Go(func() { // one per ended process; close waits for it
		s.places <- struct{}{}
		defer func() { <-s.places }()
		h, err := step.ReadHistory(context.Background(), s.journal, id)
		if err == nil {
			p := h.Profile(time.Now())
			err = step.WriteProfile(s.journal.FS(), s.journal.Dir(id), &p)
		}
		if err != nil {
			s.log.Warn("ctx-profile.json", "uuid", id, "err", err)
		}
	})
}

// close waits until all profiles are made.
func (s *store) close() error { s.profiles.Wait(); return nil }

var _ kernel.Store = (*store)(nil)

// Create begins a history.
func (s *store) Create(id types.UUID) (kernel.Recorder, error) {
	ctx := context.Background()
	lease, err := s.journal.Acquire(ctx, id, s.owner)
	if err != nil {
		return nil, err
	}
	return &recorder{step.NewWriter(s.journal, id, lease)}, nil
}

// Discard removes a history that never began.
func (s *store) Discard(id types.UUID) error { return os.RemoveAll(s.journal.Dir(id)) }

// SaveInfo replaces proc-info.json and the line of the index.
func (s *store) SaveInfo(info step.ProcInfo) error { return s.journal.PutInfo(&info) }

// SaveMeta writes process-meta.json.
func (s *store) SaveMeta(id types.UUID, system string, tools []vfs.Tool) error {
	m := step.Meta{V: step.FormatVersion, SystemPrompt: system}
	for _, t := range tools {
		m.Tools = append(m.Tools, step.ToolDef{Name: t.Name, Description: t.Description, Schema: t.Schema, Path: t.Path, Effect: string(t.Effect)})
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

// recorder is the writer of one history with its lease. Its calls do not depend on the context of the
// process: what happened is written down also when the process is being ended.
type recorder struct{ w *step.Writer }

// Add notes records; they reach the disk with the next Commit.
func (r *recorder) Add(recs ...step.Record) error {
	for i := range recs {
		if err := r.add(&recs[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *recorder) add(rec *step.Record) error {
	switch rec.Kind {
	case step.KindMessage:
		return r.w.Message(rec.Message)
	case step.KindIntent:
		return r.w.Intent(rec.Intent)
	case step.KindResult:
		return r.w.Result(rec.Result)
	case step.KindStep:
		return r.w.Step(rec.Step)
	case step.KindMarker:
		return r.w.Marker(rec.Marker)
	}
	return types.Errorf(types.ErrInternal, "Record", "", "record of kind %q", rec.Kind)
}

// Commit makes durable what was added.
func (r *recorder) Commit() error { return r.w.Commit(context.Background()) }

// Close commits what is left and gives the lease back.
func (r *recorder) Close() error { return r.w.Close(context.Background()) }
