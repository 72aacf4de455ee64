// Package crashtest checks histories after a crash: what holds for every history, whatever has happened
// to it, and that nothing is missing of what somebody was told. It goes with package faultfs, whose
// operations say what they acknowledge in the words that Recorded, Holds and Effect make.
//
// It knows step.Local and no writer: who writes gives each record a text of its own, so that a lost,
// doubled or swapped one is seen.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/types"
)

// Recorded acknowledges a record: it is on the disk under its number.
func Recorded(id types.UUID, seq uint64, label string) string {
	return fmt.Sprintf("record %s %d %s", id, seq, label)
}

// Holds acknowledges a record of which only the writer knows the number.
func Holds(id types.UUID, label string) string { return fmt.Sprintf("holds %s 0 %s", id, label) }

// Effect acknowledges that a tool has run.
func Effect(id types.UUID, call string) string { return fmt.Sprintf("effect %s %s", id, call) }

// Session opens the data directory of an operation as a daemon does, and closes it in every case.
func Session(fsys durable.FS, do func(*step.Local) error) error {
	j, err := step.OpenLocal(fsys, faultfs.DataDir, step.Synced)
	if err != nil {
		return err
	}
	return errors.Join(do(j), j.Close())
}

// Label returns the text that a record was given. Of a call that is "intent" or "result" and its id.
func Label(r *step.Record) string {
	switch r.Kind {
	case step.KindMessage:
		return r.Message.Content
	case step.KindIntent:
		return "intent " + r.Intent.CallID
	case step.KindResult:
		return "result " + r.Result.CallID
	case step.KindStep:
		return r.Step.Summary
	}
	return r.Marker.Text
}

// Sound checks every history of a data directory: it can be taken and read to its end, is Dense and
// Kept, and the index agrees with the small file. All that something was acknowledged of are listed.
func Sound(fsys durable.FS, acked []string) error {
	return Session(fsys, func(j *step.Local) error {
		entries, err := fsys.ReadDir(filepath.Dir(j.Dir(types.UUID{})))
		for _, e := range entries {
			var id types.UUID
			if e.IsDir() && id.UnmarshalText([]byte(e.Name())) == nil {
				err = errors.Join(err, soundHistory(j, id, acked))
			}
		}
		for _, a := range acked {
			if f := strings.Fields(a); slices.Contains([]string{"record", "holds", "effect"}, f[0]) && !slices.ContainsFunc(j.Index().List(), func(p step.ProcInfo) bool { return p.UUID.String() == f[1] }) {
				return errors.Join(err, fmt.Errorf("%s was acknowledged, and the history is not listed", a))
			}
		}
		return err
	})
}

func soundHistory(j *step.Local, id types.UUID, acked []string) error {
	ctx := context.Background()
	lease, err := j.Acquire(ctx, id, "check")
	if err != nil {
		return err
	}
	if err := j.Release(ctx, id, lease.Epoch); err != nil {
		return err
	}
	h, err := step.ReadHistory(ctx, j, id)
	if err != nil || h.Damage != "" || lease.Next != uint64(len(h.Records))+1 {
		return fmt.Errorf("history %s: %d records, next %d, damage %q, %v", id, len(h.Records), lease.Next, h.Damage, err)
	}
	if err := Dense(h); err != nil {
		return fmt.Errorf("history %s: %w", id, err)
	}
	if p, ok := j.Index().Get(id); ok {
		if info, err := step.ReadInfo(j.FS(), j.Dir(id)); err == nil && (info.Step != p.Step || info.Suspended != p.Suspended || info.State != p.State) {
			return fmt.Errorf("history %s: the index says %s, step %d, suspended %v; the file %s, step %d, suspended %v", id, p.State, p.Step, p.Suspended, info.State, info.Step, info.Suspended)
		}
	}
	return Kept(h, acked)
}

// Dense checks that records are numbered from 1 without a gap, that none is there twice, that each result
// has an intent before it, and that each intent without a result is reported once. What a start says of
// itself may be there more than once.
func Dense(h *step.History) error {
	var open []string
	seen := map[string]bool{}
	for i := range h.Records {
		r := &h.Records[i]
		text := Label(r)
		if r.Seq != uint64(i)+1 {
			return fmt.Errorf("record %d is numbered %d", i+1, r.Seq)
		}
		if seen[text] && text != Interrupted {
			return fmt.Errorf("%q is there twice", text)
		}
		seen[text] = true
		switch r.Kind {
		case step.KindIntent:
			open = append(open, r.Intent.CallID)
		case step.KindResult:
			n := len(open)
			if open = slices.DeleteFunc(open, func(id string) bool { return id == r.Result.CallID }); len(open) != n-1 {
				return fmt.Errorf("%q has no intent before it", text)
			}
		}
	}
	var told []string
	for _, c := range h.Interrupted {
		told = append(told, c.CallID)
	}
	if !slices.Equal(told, open) {
		return fmt.Errorf("the calls %v are reported as interrupted, and %v are", told, open)
	}
	return nil
}

// Interrupted is the text of the marker with which a daemon says that the one before it broke off.
const Interrupted = "the daemon ended without warning"

// Kept checks that everything acknowledged of a history is in it.
func Kept(h *step.History, acked []string) error {
	for _, a := range acked {
		f := strings.SplitN(a, " ", 4)
		if len(f) < 2 || f[1] != h.UUID.String() {
			continue
		}
		switch f[0] {
		case "record":
			var seq int
			fmt.Sscan(f[2], &seq)
			if seq > len(h.Records) || Label(&h.Records[seq-1]) != f[3] {
				return fmt.Errorf("%s was acknowledged and is lost; there are %d records", a, len(h.Records))
			}
		case "holds":
			if !slices.ContainsFunc(h.Records, func(r step.Record) bool { return Label(&r) == f[3] }) {
				return fmt.Errorf("%s was acknowledged and is lost; there are %d records", a, len(h.Records))
			}
		case "effect":
			if !slices.ContainsFunc(h.Records, func(r step.Record) bool { return r.Kind == step.KindIntent && r.Intent.CallID == f[2] }) {
				return fmt.Errorf("the call %s has run, and nothing says so", f[2])
			}
		}
	}
	return nil
}
