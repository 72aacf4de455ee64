package main

import (
	"archive/tar"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// oldDir has what commit a10e677 wrote, and how it was made. The records name oldRoot, where it must be: a directory of a user.
const (
	oldDir  = "testdata/a10e677"
	oldRoot = "/tmp/rnix-a10e677"
)

// oldData is a daemon on the data of an older version.
type oldData struct {
	*testenv.System
	t     *testing.T
	procs []ipc.Proc // as they were found
	lines []string   // what was found, as in want.txt
}

// say adds a line of what was found.
func (o *oldData) say(format string, args ...any) {
	o.lines = append(o.lines, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// newOldData starts a daemon on the data, in its place.
func newOldData(t *testing.T) *oldData {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	p := readPlays(t, oldDir+"/plays.txt")
	_, url := llmtest.NewAPI(t, p.answer)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+url+"/v1", "OPENAI_MODEL=fake", "RNIX_DAEMON_AUTO_RESUME=false")
	s.Stop()
	holdRoot(t)
	unpack(t, filepath.FromSlash(oldDir+"/data.tar.bz2"), oldRoot)
	s.Home, s.Data, s.Work = oldRoot+"/home", oldRoot+"/data", oldRoot+"/work"
	config, err := os.OpenFile(s.Home+"/.config/rnix/config.yaml", os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = config.WriteString("gc: {retention_days: 0, max_entries: 10}\n") // what it takes must not depend on the day
		err = errors.Join(err, config.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range s.Env {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "HOME":
			s.Env[i] = "HOME=" + s.Home
		case "RNIX_DATA_DIR":
			s.Env[i] = "RNIX_DATA_DIR=" + s.Data
		}
	}
	t.Cleanup(s.Stop)
	s.Start()
	s.Settle()
	return &oldData{System: s, t: t}
}

// holdRoot makes oldRoot anew, for this test alone until its end: it waits while another one holds the lock on it.
func holdRoot(t *testing.T) {
	t.Helper()
	for {
		if err := os.MkdirAll(oldRoot, 0o700); err != nil {
			t.Fatal(err)
		}
		d, err := os.Open(oldRoot)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another test has just removed it
		}
		if err != nil {
			t.Fatal(err)
		}
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
		}
		held, serr := d.Stat()
		now, nerr := os.Stat(oldRoot)
		if err = errors.Join(err, serr); err != nil {
			t.Fatal(err)
		}
		if nerr == nil && os.SameFile(held, now) {
			t.Cleanup(func() {
				if err := errors.Join(os.RemoveAll(oldRoot), d.Close()); err != nil {
					t.Error(err)
				}
			})
			break
		}
		_ = d.Close() // it was removed while we waited
	}
	left, err := filepath.Glob(oldRoot + "/*") // by a test that was killed
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// unpack puts an archive into a directory.
func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(bzip2.NewReader(f)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, h.FileInfo().Mode())
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, h.FileInfo().Mode()), os.Chtimes(path, h.ModTime, h.ModTime))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ask calls a method that must succeed.
func ask[Req, Resp any](o *oldData, m ipc.Method[Req, Resp], req Req) Resp {
	o.t.Helper()
	r, err := ipc.Call(o.t.Context(), o.Client, m, req)
	if err != nil {
		o.t.Errorf("%s %+v: %v", m.Name, req, err)
	}
	return r
}

// rnix runs the program, which must succeed.
func (o *oldData) rnix(args ...string) string {
	o.t.Helper()
	c := exec.Command("rnix", args...)
	c.Dir, c.Env = o.Work, append(o.Env, "TERM=dumb", "GORACE=atexit_sleep_ms=0")
	out, err := c.CombinedOutput()
	if err != nil {
		o.t.Errorf("rnix %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Data that commit a10e677 wrote, before its daemon was killed, opens: each history is as it was left, can be looked into, is forked and is
// resumed to its end.
func TestDataWrittenByAnOlderVersionOpens(t *testing.T) {
	o := newOldData(t)
	o.procs = ask(o, ipc.ListProcs, ipc.ListRequest{All: true}).Procs
	o.found()
	o.sound()
	o.commands()
	o.merges()
	o.forks()
	o.resumes()
	o.sound()
	o.compare()
}

// sound checks that nothing is wrong on disk.
func (o *oldData) sound() {
	o.t.Helper()
	if r := ask(o, ipc.Fsck, ipc.FsckRequest{}); r.Errors > 0 || len(r.Findings) > 0 {
		o.t.Errorf("fsck finds %+v", r.Findings)
	}
}

// compare holds what was found against want.txt.
func (o *oldData) compare() {
	o.t.Helper()
	path := filepath.FromSlash(oldDir + "/want.txt")
	got := strings.Join(o.lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			o.t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		o.t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
	for _, line := range want {
		if !slices.Contains(o.lines, line) {
			o.t.Errorf("missing: %s", line)
		}
	}
	for _, line := range o.lines {
		if !slices.Contains(want, line) {
			o.t.Errorf("not wanted: %s", line)
		}
	}
}

// endOf is how a process ended, in a few words.
func endOf(exit *types.ExitStatus) string {
	if exit == nil {
		return ""
	}
	return fmt.Sprintf("exit %d: %s", exit.Code, exit.Reason)
}
