package run

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/testcase"
	"rnix/internal/yamlfile"
	"rnix/types"
)

const opRun = "Case"

// Options say how cases are run.
type Options struct {
	Parallel int  // how many at once; 0 = one
	Update   bool // write the expectations of those that differ anew, unconfirmed
	// MustOffline refuses to run a case where its network cannot be cut off; else the report says that it was not.
	MustOffline bool
	// Program is this program, which is started as the daemon of each case; empty = the one that runs.
	Program string
	Env     []string // of the caller, of which cases get what programs need to be found
	// Done is told of each case when it has ended, one at a time, in the order in which they end; nil = nobody.
	Done func(*testcase.Outcome)

	online atomic.Pointer[string] // why cases had a network; nil = none had
}

// Find returns the directories of the cases in directories, in their order: those that are cases, and those below them.
// Hidden directories and the workspaces of cases are not looked into. A directory without a case is NOT_FOUND.
func Find(dirs []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	for _, dir := range dirs {
		n := len(out)
		twice := false
		dir = filepath.Clean(dir)
		err := filepath.WalkDir(dir+string(filepath.Separator), func(p string, e fs.DirEntry, err error) error { // also if dir is a link
			if err != nil {
				return err
			}
			p = filepath.Clean(p)
			if !e.IsDir() {
				return nil
			}
			if p != dir && strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir
			}
			if _, err := os.Lstat(filepath.Join(p, testcase.File)); err != nil {
				return nil
			}
			if !seen[p] {
				out = append(out, p)
			} else {
				twice = true
			}
			seen[p] = true
			return fs.SkipDir
		})
		switch {
		case os.IsNotExist(err):
			return nil, types.Errorf(types.ErrNotFound, opRun, dir, "no such directory")
		case err != nil:
			return nil, types.Errorf(types.ErrInvalid, opRun, dir, "%w", yamlfile.Cause(err))
		case len(out) == n && !twice:
			return nil, types.Errorf(types.ErrNotFound, opRun, dir, "there is no case in it: a case is a directory with a %s; make one with: rnix test import PROCESS --dir %s", testcase.File, dir)
		}
	}
	return out, nil
}

// Run runs the cases in directories, which Find has found. A case that cannot be read or run is in the report; so are
// those that ctx has ended. What runs that were killed have left is removed.
func Run(ctx context.Context, dirs []string, o *Options) *testcase.Report {
	began := time.Now()
	sweep(tempDir())
	out := make([]testcase.Outcome, len(dirs))
	next := make(chan int)
	var mu sync.Mutex // held while Done is told
	var workers sync.WaitGroup
	for range max(1, min(o.Parallel, len(dirs))) {
		workers.Go(func() { // ends when next is closed; waited for below
			for i := range next {
				out[i] = one(ctx, dirs[i], o)
				if o.Done != nil {
					mu.Lock()
					o.Done(&out[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range dirs {
		next <- i
	}
	close(next)
	workers.Wait()
	r := testcase.NewReport(out, time.Since(began))
	if why := o.online.Load(); why != nil {
		r.Online = *why
	}
	return r
}

// one runs the case in a directory.
func one(ctx context.Context, dir string, o *Options) (out testcase.Outcome) {
	began := time.Now()
	out = testcase.Outcome{Name: filepath.Base(dir), Dir: dir, Status: testcase.Broken}
	defer func() { out.Took = time.Since(began) }()
	say := func(at, format string, args ...any) {
		out.Problems = append(out.Problems, testcase.Problem{At: at, What: fmt.Sprintf(format, args...)})
	}
	if ctx.Err() != nil {
		say("", "interrupted")
		return out
	}
	c, err := testcase.Read(dir)
	if err != nil {
		say("", "%v", Cause(err))
		return out
	}
	out.Name = c.Name
	if ctx.Err() != nil {
		out.Status = testcase.Interrupted
		say("", "it had not begun")
		return out
	}
	s, err := newStage(c, o)
	if err != nil {
		say(filepath.Join(dir, testcase.File), "%v", err)
		return out
	}
	limited, cancel := context.WithTimeoutCause(ctx, c.Limit(), errLimit)
	defer cancel()
	r, err := s.play(limited)
	stuck := ""
	if err != nil && context.Cause(limited) == errLimit {
		stuck = s.stuck()
	}
	if cerr := s.close(); cerr != nil {
		out.Notes = append(out.Notes, cerr.Error())
	}
	out.Notes = append(out.Notes, s.notes...)
	switch {
	case stuck != "":
		out.Status = testcase.TimedOut
		say(c.At("timeout"), "not ended after %v, and killed: %s", c.Limit(), stuck)
		return out
	case ctx.Err() != nil:
		out.Status = testcase.Interrupted
		say("", "interrupted while it ran")
		return out
	case err != nil:
		say(filepath.Join(dir, testcase.File), "%v", err)
		return out
	}
	out.Calls = len(r.Calls)
	judge(c, r, o, &out)
	return out
}

// judge compares what came of a case with what was expected, and writes that anew if it is to be.
func judge(c *testcase.Case, r *testcase.Run, o *Options, out *testcase.Outcome) {
	out.Problems = c.Compare(r)
	out.Status = testcase.Passed
	if len(out.Problems) > 0 {
		out.Status = testcase.Failed
	}
	if o.Update && len(out.Problems) > 0 {
		again, err := update(c, r)
		if err != nil {
			out.Problems = append(out.Problems, testcase.Problem{At: filepath.Join(c.Dir, testcase.File), What: fmt.Sprintf("the expectations cannot be written anew: %v", err)})
			return
		}
		out.Updated, c = true, again
	}
	for _, key := range c.Unconfirmed() {
		if out.Status != testcase.Failed || out.Updated {
			out.Status = testcase.Unconfirmed
		}
		part := strings.TrimSuffix(strings.TrimPrefix(key, "expect."), ".confirmed")
		out.Problems = append(out.Problems, testcase.Problem{At: c.At(key),
			What: fmt.Sprintf("what is expected of the %s was proposed and is not confirmed: read it, and write confirmed: true", part)})
	}
}

// update writes the expectations of a case anew.
func update(c *testcase.Case, r *testcase.Run) (*testcase.Case, error) {
	path := filepath.Join(c.Dir, testcase.File)
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	expect, files := testcase.Propose(r)
	text, ok := testcase.Updated(string(src), expect)
	if !ok {
		return nil, fmt.Errorf("expect has to be the last key of the file, with nothing behind it")
	}
	if _, err := testcase.Parse(c.Dir, path, []byte(text)); err != nil {
		return nil, err
	}
	for name, b := range files {
		p := filepath.Join(c.Dir, filepath.FromSlash(name))
		if err := replace(p, b); err != nil {
			return nil, err
		}
	}
	if err := replace(path, []byte(text)); err != nil {
		return nil, err
	}
	return testcase.Read(c.Dir)
}

// replace writes a file whole or not at all.
func replace(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone when it was renamed
	_, err = f.Write(b)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
