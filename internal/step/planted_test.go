package step_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

// bug is a disk with a planted bug: each function that is not nil takes the place of a call.
type bug struct {
	durable.FS
	open    func(b *bug, name string, flag int) (durable.File, error)
	file    func(f durable.File, name string) durable.File
	syncDir func(b *bug, name string) error
	rename  func(b *bug, from, to string) error
	remove  func(b *bug, name string) error
}

func (b *bug) OpenFile(name string, flag int, perm fs.FileMode) (f durable.File, err error) {
	if b.open != nil {
		f, err = b.open(b, name, flag)
	} else {
		f, err = b.FS.OpenFile(name, flag, perm)
	}
	if err == nil && b.file != nil {
		f = b.file(f, name)
	}
	return f, err
}

func (b *bug) SyncDir(name string) error {
	if b.syncDir != nil {
		return b.syncDir(b, name)
	}
	return b.FS.SyncDir(name)
}

func (b *bug) Rename(from, to string) error {
	if b.rename != nil {
		return b.rename(b, from, to)
	}
	return b.FS.Rename(from, to)
}

func (b *bug) Remove(name string) error {
	if b.remove != nil {
		return b.remove(b, name)
	}
	return b.FS.Remove(name)
}

// badFile is a file with a planted bug.
type badFile struct {
	durable.File
	write    func(f durable.File, b []byte) (int, error)
	sync     func(f durable.File) error
	truncate func(f durable.File, size int64) error
}

func (f *badFile) Write(b []byte) (int, error) {
	if f.write != nil {
		return f.write(f.File, b)
	}
	return f.File.Write(b)
}

func (f *badFile) Sync() error {
	if f.sync != nil {
		return f.sync(f.File)
	}
	return f.File.Sync()
}

func (f *badFile) Truncate(size int64) error {
	if f.truncate != nil {
		return f.truncate(f.File, size)
	}
	return f.File.Truncate(size)
}

// files plants a bug in the files whose names hold part.
func files(part string, bad badFile) func(durable.File, string) durable.File {
	return func(f durable.File, name string) durable.File {
		if !strings.Contains(name, part) {
			return f
		}
		b := bad
		b.File = f
		return &b
	}
}

func noSync(durable.File) error { return nil }

// opNamed returns an operation with a planted bug in what is below it.
func opNamed(name string, b bug) *faultfs.Op {
	for _, op := range crashOps() {
		if op.Name == name {
			op.Between = func(fsys durable.FS) durable.FS { c := b; c.FS = fsys; return &c }
			return op
		}
	}
	return nil
}

// altered returns an operation that runs or recovers in another way.
func altered(name string, change func(op *faultfs.Op)) *faultfs.Op {
	op := opNamed(name, bug{})
	op.Between = nil
	change(op)
	return op
}

// inOneSession is a Run that writes as an author does.
func inOneSession(d step.Durability, do func(*author)) func(durable.FS, func(string)) error {
	return func(fsys durable.FS, ack func(string)) error {
		j, err := step.OpenLocal(fsys, faultfs.DataDir, d)
		if err != nil {
			return err
		}
		return errors.Join(authored(j, histA, ack, do), j.Close())
	}
}

// planted are bugs that people make. Each must be found by a part of the suite.
var planted = map[string]*faultfs.Op{
	"names of new files are not synced": opNamed("create", bug{syncDir: func(*bug, string) error { return nil }}),
	"the name of the history's directory is not synced": opNamed("create", bug{syncDir: func(b *bug, name string) error {
		if filepath.Base(name) == step.StepsDir {
			return nil
		}
		return b.FS.SyncDir(name)
	}}),
	"a commit is acknowledged before its sync": opNamed("append", bug{file: files(step.StepsFile, badFile{sync: noSync})}),
	"a commit does not sync": altered("append", func(op *faultfs.Op) {
		op.Run = inOneSession(step.Unsynced, func(a *author) { a.whole(3, 1, 40) })
	}),
	"a counter is renamed before it is synced": opNamed("PIDs", bug{file: files("pid", badFile{sync: noSync})}),
	"a counter is not renamed":                 opNamed("PIDs", bug{rename: keepOld("pid")}),
	"an epoch is reused":                       opNamed("epochs", bug{rename: keepOld("epoch")}),
	"a file is overwritten in place": opNamed("PIDs", bug{
		open: func(b *bug, name string, flag int) (durable.File, error) {
			if strings.Contains(name, ".pid.") {
				name, flag = filepath.Join(filepath.Dir(name), "pid"), os.O_WRONLY|os.O_CREATE|os.O_TRUNC
			}
			return b.FS.OpenFile(name, flag, durable.FilePerm)
		},
		rename: keepOld("pid"),
	}),
	"a torn tail is not cut": opNamed("append", bug{file: files(step.StepsFile, badFile{truncate: func(durable.File, int64) error { return nil }})}),
	"a write is buffered by the program": opNamed("append", bug{file: func(f durable.File, name string) durable.File {
		var held []byte
		return files(step.StepsFile, badFile{write: func(f durable.File, b []byte) (int, error) {
			_, err := f.Write(held)
			held = bytes.Clone(b)
			return len(b), err
		}})(f, name)
	}}),
	"a record is written twice": opNamed("append", bug{file: files(step.StepsFile, badFile{write: func(f durable.File, b []byte) (int, error) {
		_, err := f.Write(append(bytes.Clone(b), b...))
		return len(b), err
	}})}),
	"a short write is taken for a whole one": opNamed("append", bug{file: files(step.StepsFile, badFile{write: func(f durable.File, b []byte) (int, error) {
		_, _ = f.Write(b)
		return len(b), nil
	}})}),
	"a failed sync is tried again": opNamed("append", bug{file: files(step.StepsFile, badFile{sync: func(f durable.File) error {
		if f.Sync() != nil {
			return f.Sync()
		}
		return nil
	}})}),
	"a failed sync is ignored":      opNamed("append", bug{file: files(step.StepsFile, badFile{sync: func(f durable.File) error { _ = f.Sync(); return nil }})}),
	"temporary files are left":      opNamed("PIDs", bug{remove: func(*bug, string) error { return nil }}),
	"a removal is not made durable": opNamed("discard", bug{syncDir: func(*bug, string) error { return nil }}),
	"a history is removed file by file": altered("discard", func(op *faultfs.Op) {
		op.Run = func(fsys durable.FS, ack func(string)) error {
			dir := step.Dir(faultfs.DataDir, histA)
			for _, name := range []string{step.InfoFile, step.StepsFile} {
				if err := fsys.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return nil
		}
		op.Check = func(fsys durable.FS, acked []string) error {
			if _, err := fsys.Stat(step.Dir(faultfs.DataDir, histA)); err != nil {
				return nil
			}
			h, err := step.ReadSteps(fsys, step.Dir(faultfs.DataDir, histA), histA)
			if err != nil || len(h.Steps) != 1 {
				return fmt.Errorf("a part of the history is there: %w", err)
			}
			return nil
		}
	}),
	"a tool runs before its intent is durable": altered("append", func(op *faultfs.Op) {
		op.Run = inOneSession(step.Synced, func(a *author) { a.effect(a.intent(3)); a.commit() })
	}),
	"a result is written before its intent": altered("append", func(op *faultfs.Op) {
		op.Run = inOneSession(step.Synced, func(a *author) {
			call := fmt.Sprint("c", a.w.Next()+1)
			a.result(3, call)
			a.commit()
			a.intent(3)
			a.commit()
		})
	}),
	"an operation swallows an error": altered("append", func(op *faultfs.Op) {
		run := op.Run
		op.Run = func(fsys durable.FS, ack func(string)) error { _ = run(fsys, ack); return nil }
	}),
	"every recovery marks the history again": altered("interrupted", func(op *faultfs.Op) {
		op.Recover = func(fsys durable.FS) error {
			return crashtest.Session(fsys, func(j *step.Local) error { return interrupted(j, *running(histA, 4, 1), func(string) {}) })
		}
	}),
	"a recovery panics": altered("create", func(op *faultfs.Op) {
		op.Recover = func(fsys durable.FS) error {
			f, _ := fsys.OpenFile(filepath.Join(step.Dir(faultfs.DataDir, histA), step.StepsFile), os.O_RDONLY, 0)
			return f.Close()
		}
	}),
	"a fork that was never finished is kept":       altered("fork", func(op *faultfs.Op) { op.Recover = restart }),
	"a checkpoint ahead of the journal is trusted": ahead(),
	"a checkpoint ahead of the journal is kept": opNamed("checkpoint", bug{remove: func(b *bug, name string) error {
		if filepath.Base(name) == step.CheckpointFile {
			return nil
		}
		return b.FS.Remove(name)
	}}),
}

// ahead trusts every checkpoint, in a history that nobody has taken yet.
func ahead() *faultfs.Op {
	op := checkpointOp(func(*step.Checkpoint, *step.History) bool { return true })
	op.Recover = func(fsys durable.FS) error { return crashtest.Session(fsys, func(*step.Local) error { return nil }) }
	return op
}

// keepOld is a rename that does not happen to the file named base.
func keepOld(base string) func(*bug, string, string) error {
	return func(b *bug, from, to string) error {
		if filepath.Base(to) == base {
			if err := b.FS.Remove(from); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		return b.FS.Rename(from, to)
	}
}

func TestPlantedBugsAreFound(t *testing.T) {
	for name, op := range planted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var found []string
			synctest.Test(t, func(*testing.T) {
				for _, explore := range []func() faultfs.Report{
					func() faultfs.Report { return op.Crash(4) },
					func() faultfs.Report { return op.Errors(2) },
					func() faultfs.Report { return op.CrashAgain(3, 1) },
				} {
					if found = explore().Problems; len(found) > 0 {
						return
					}
				}
			})
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			t.Log(found[0])
		})
	}
}

// A reader that does not look at the checksum passes for a good one with most of the flipped bytes, and must not.
func TestReaderWithoutChecksumIsFound(t *testing.T) {
	d := newDamaged(t)
	d.read = func(id types.UUID) (*step.History, error) {
		b, err := durable.ReadFile(d.fsys, d.path)
		h, _ := step.Fold(id, func(yield func(step.Record, error) bool) {
			for i, line := range bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n")) {
				var r step.Record
				if json.Unmarshal(line, &r) != nil || !r.Holds() {
					yield(r, types.Errorf(types.ErrStorage, "Replay", "", "line %d, offset %d: not a record", i+1, bytes.Index(b, line)))
					return
				}
				if !yield(r, nil) {
					return
				}
			}
		})
		return h, err
	}
	_, start := d.lineAt(len(d.good) - damageTail)
	found := 0
	for off := start; off < len(d.good); off += 17 {
		bad := bytes.Clone(d.good)
		bad[off] ^= 1
		step.Must(t, d.put(bad, ""))
		n, begin := d.lineAt(off)
		if d.reads(n, fmt.Sprintf("line %d, offset %d", n+1, begin)) != nil {
			found++
		}
	}
	if found < 10 {
		t.Errorf("it was found at %d bytes", found)
	}
}

// The invariant checker has to see what it is there for, when it is handed a spoilt history.
func TestCheckerSeesGapsDuplicatesAndLosses(t *testing.T) {
	j := step.OpenIn(t, faultfs.New(faultfs.DataDir), faultfs.DataDir)
	var acked []string
	step.Must(t, authored(j, histA, func(s string) { acked = append(acked, s) }, func(a *author) { a.whole(1, 1, 10); a.whole(2, 1, 10) }))
	read := func() *step.History {
		h, err := step.ReadHistory(context.Background(), j, histA)
		step.Must(t, err)
		return h
	}
	if h := read(); crashtest.Dense(h) != nil || crashtest.Kept(h, acked) != nil {
		t.Fatalf("a sound history: %v, %v", crashtest.Dense(h), crashtest.Kept(h, acked))
	}
	for name, spoil := range map[string]func(h *step.History){
		"a gap":                    func(h *step.History) { h.Records = append(h.Records[:3], h.Records[4:]...) },
		"a duplicate":              func(h *step.History) { h.Records[4] = h.Records[3] },
		"a loss":                   func(h *step.History) { h.Records = h.Records[:len(h.Records)-1] },
		"an intent told twice":     func(h *step.History) { h.Interrupted = append(h.Interrupted, *h.Records[1].Intent) },
		"a result without intent":  func(h *step.History) { h.Records[1] = h.Records[0]; h.Records[1].Seq = 2 },
		"a record with other text": func(h *step.History) { h.Records[0].Message = step.User("other") },
	} {
		h := read()
		spoil(h)
		if crashtest.Dense(h) == nil && crashtest.Kept(h, acked) == nil {
			t.Errorf("%s is not seen", name)
		}
	}
}
