package step

import (
	"errors"
	"maps"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/types"
)

// infoState says how far a proc-info.json can be relied on.
type infoState bool

const (
	unsynced infoState = false // power loss may bring back the one before
	older    infoState = true  // it could not be written
)

// Over reports whether a history has ended for good, as far as this says: a start does not look at its records.
func (p *ProcInfo) Over() bool {
	return p.State == types.StateDead && (!p.Suspended || p.Exit != nil)
}

// PutInfo replaces the proc-info.json of a history and its line of the index. The index comes first:
// while it says that it was closed, no file may be newer. That a history is at rest is made durable, and so is that
// it is not over any more, before its next record: a start does not look at the records of what is over.
func (l *Local) PutInfo(info *ProcInfo) error {
	was, _ := l.index.Get(info.UUID)
	err := l.index.Put(*info)
	if l.index.closed() {
		return err
	}
	class := durable.Class(l.durability == Synced && (info.State == types.StateDead || info.Suspended || was.Over()))
	werr := writeInfo(l.fs, l.Dir(info.UUID), info, class)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case werr != nil:
		l.infos[info.UUID] = older
	case class == durable.Durable:
		delete(l.infos, info.UUID)
	default:
		l.infos[info.UUID] = unsynced
	}
	return errors.Join(err, werr)
}

// syncInfos makes durable what PutInfo has not: an index that is closed must not be newer than a file.
func (l *Local) syncInfos() error {
	l.mu.Lock()
	infos := maps.Clone(l.infos)
	l.mu.Unlock()
	if l.durability == Unsynced {
		return nil
	}
	for id, state := range infos {
		if state == older {
			return types.Errorf(types.ErrStorage, "Close", filepath.Join(l.Dir(id), InfoFile), "could not be written; the index will be made anew")
		}
		info, err := ReadInfo(l.fs, l.Dir(id))
		if err == nil {
			err = writeInfo(l.fs, l.Dir(id), info, durable.Durable)
		}
		if err != nil && types.CodeOf(err) != types.ErrNotFound {
			return err
		}
	}
	return nil
}

// dropAhead removes a checkpoint of records that were lost, before others take their numbers and make
// it look right.
func dropAhead(fsys durable.FS, dir string, next uint64) error {
	seq, err := checkpointSeq(fsys, dir)
	if err != nil || seq < next {
		return nil // what cannot be read is not believed either
	}
	if err := fsys.Remove(filepath.Join(dir, CheckpointFile)); err != nil {
		return types.Errorf(types.ErrStorage, "Acquire", filepath.Join(dir, CheckpointFile), "%w", err)
	}
	if err := fsys.SyncDir(dir); err != nil {
		return types.Errorf(types.ErrStorage, "Acquire", dir, "%w", err)
	}
	return nil
}
