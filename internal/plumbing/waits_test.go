package plumbing

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGitThatWaitsAtAPipeIsEnded(t *testing.T) {
	for _, c := range []struct{ pipe, says string }{
		{"sub/.gitignore", "./sub/.gitignore"},
		{".gitattributes", "./.gitattributes"},
		{"sub/.gitmodules", "./sub/.gitmodules"},
		{"sub/.git/refs/heads/main", "./sub/.git/refs/heads/main"},
		{".git/HEAD", "./.git/HEAD"},
		{"sub/.git/objects/info/alternates", "./sub/.git/objects/info/alternates"},
		{"sub/.git/objects/aa/bb", "./sub/.git/objects/aa/bb"},
		{"sub/pipe", ""},
	} {
		t.Run(c.pipe, func(t *testing.T) {
			dir := t.TempDir()
			pipe := filepath.Join(dir, c.pipe)
			if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, end := Watch(t.Context(), Patience, func() Where { return Where{Top: dir, Gits: []string{""}} })
				began := time.Now()
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				err := end()
				if pipe, ok := errors.AsType[*PipeError](err); ok != (c.says != "") || ok && (pipe.Path != c.says || time.Since(began) != Patience) {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// A pipe is found also behind a link, where a .git that is a file leads, in the repository of a work tree, and where objects are borrowed from; also one
// that is made later.
func TestAPipeIsFoundWhereverGitReads(t *testing.T) {
	fifo := func(t *testing.T, path string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	file := func(t *testing.T, path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, write := range map[string]func(t *testing.T, dir string) string{
		"link": func(t *testing.T, dir string) string {
			fifo(t, dir+"/pipe")
			file(t, dir+"/sub/.git/HEAD", "")
			if err := os.Symlink("../../pipe", dir+"/sub/.git/config"); err != nil {
				t.Fatal(err)
			}
			return "./pipe"
		},
		"linked rules": func(t *testing.T, dir string) string {
			fifo(t, dir+"/pipe")
			if err := os.Symlink("pipe", dir+"/.gitignore"); err != nil {
				t.Fatal(err)
			}
			return "./pipe"
		},
		"linked directory": func(t *testing.T, dir string) string {
			fifo(t, dir+"/hidden/main")
			file(t, dir+"/sub/.git/HEAD", "")
			if err := os.Symlink("../../hidden", dir+"/sub/.git/refs"); err != nil {
				t.Fatal(err)
			}
			return "./hidden/main"
		},
		"file": func(t *testing.T, dir string) string {
			file(t, dir+"/sub/.git", "gitdir: ../hidden\n")
			fifo(t, dir+"/hidden/refs/heads/main")
			return "./hidden/refs/heads/main"
		},
		"common directory": func(t *testing.T, dir string) string {
			file(t, dir+"/.git", "gitdir: common/worktrees/x\n")
			file(t, dir+"/common/worktrees/x/commondir", "../..\n")
			fifo(t, dir+"/common/info/exclude")
			return "./common/info/exclude"
		},
		"alternates": func(t *testing.T, dir string) string {
			file(t, dir+"/.git/objects/info/alternates", "../../a/objects\n")
			file(t, dir+"/a/objects/info/alternates", dir+"/b\n")
			fifo(t, dir+"/b/info/commit-graph")
			return "./b/info/commit-graph"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := Resolved(t.TempDir())
			want := write(t, dir)
			if got := (Where{Top: dir}).pipe(t.Context(), ""); got == nil || got.Path != want || got.leads {
				t.Errorf("%v, want %q", got, want)
			}
		})
	}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, end := Watch(t.Context(), Patience, func() Where { return Where{Top: dir} })
		time.Sleep(Patience + 1)
		fifo(t, dir+"/.gitignore")
		<-ctx.Done()
		if _, found := errors.AsType[*PipeError](end()); !found {
			t.Error("what is made later is not found")
		}
	})
}

// A pipe to which a repository leads, and which is not in it, is not named, nor what is beside it: an agent may not be allowed to see it.
func TestAPipeElsewhereIsNotNamed(t *testing.T) {
	elsewhere := Resolved(t.TempDir())
	if err := errors.Join(os.Mkdir(elsewhere+"/info", 0o700), syscall.Mkfifo(elsewhere+"/info/secret", 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		write func(dir string) error
		says  string
	}{
		"link":      {func(dir string) error { return os.Symlink(elsewhere+"/info/secret", dir+"/.git/a") }, "./.git/a leads to a pipe, "},
		"directory": {func(dir string) error { return os.Symlink(elsewhere, dir+"/.git/a") }, "./.git/a leads to a pipe, "},
		"alternates": {func(dir string) error {
			return os.WriteFile(dir+"/.git/objects/info/alternates", []byte(elsewhere+"\n"), 0o600)
		}, "./.git/objects/info/alternates leads to a pipe, "},
		"commondir": {func(dir string) error { return os.WriteFile(dir+"/.git/commondir", []byte(elsewhere+"\n"), 0o600) }, "./.git leads to a pipe, "},
		"a .git below": {func(dir string) error {
			return errors.Join(os.Mkdir(dir+"/sub", 0o700), os.WriteFile(dir+"/sub/.git", []byte("gitdir: "+elsewhere+"\n"), 0o600))
		}, "./sub/.git leads to a pipe, "},
		"its .git": {func(dir string) error {
			return errors.Join(os.RemoveAll(dir+"/.git"), os.WriteFile(dir+"/.git", []byte("gitdir: "+elsewhere+"\n"), 0o600))
		}, "./.git leads to a pipe, "},
	} {
		dir := t.TempDir()
		err := errors.Join(os.MkdirAll(dir+"/.git/objects/info", 0o700), os.WriteFile(dir+"/.git/HEAD", nil, 0o600), c.write(dir))
		if err != nil {
			t.Fatal(err)
		}
		got := Where{Top: dir, Gits: []string{Dir(dir), CommonOf(Dir(dir))}}.pipe(t.Context(), "")
		if got == nil || !strings.HasPrefix(got.Error(), c.says) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := (Where{Gits: []string{elsewhere}}).pipe(t.Context(), ""); got == nil || got.Path != "" {
		t.Errorf("what is no git directory: %v", got)
	}
}

// A git that works, or waits for something else, does not wait at the pipe that is there. One that has it open does, whatever is written into it.
func TestOnlyAGitThatWaitsAtThePipeIsEndedForIt(t *testing.T) {
	if d := doingOf(os.Getpid()); !d.known || !d.asked {
		t.Skip("needs a system that says what a process does")
	}
	dir := Resolved(t.TempDir())
	pipe := filepath.Join(dir, ".gitignore")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for program, ended := range map[string]bool{
		"while :; do :; done":                     false,
		"(while :; do :; done) & wait":            false,
		"exec sleep 30":                           false,
		"sleep 30 & wait":                         false,
		"exec <.gitignore":                        true,
		"(exec <.gitignore) & wait":               true,
		"exec 5<>.gitignore; exec sleep 30":       true,
		"exec 5<>.gitignore; while :; do :; done": true,
	} {
		cmd := exec.Command("/bin/sh", "-c", program)
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Setpgid: true}, dir
		ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{false: 1500 * time.Millisecond, true: time.Minute}[ended])
		watched, end := Watch(ctx, 200*time.Millisecond, func() Where { return Where{Top: dir} })
		started := Starting(watched)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started(cmd.Process.Pid)
		<-watched.Done()
		if err := end(); (err != nil) != ended || ended && err.Error() != (&PipeError{Path: "./.gitignore"}).Error() {
			t.Errorf("%s: %v", program, err)
		}
		cancel()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}
}

// A git that waits for a file to open which is not found, such as one that its configuration names, is ended as well, after a longer time; one that waits
// for something else is not.
func TestAGitThatWaitsElsewhereIsEnded(t *testing.T) {
	if d := doingOf(os.Getpid()); !d.known || !d.asked {
		t.Skip("needs a system that says what a process does")
	}
	pipe, dir := filepath.Join(t.TempDir(), "pipe"), t.TempDir()
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const after = 20 * time.Millisecond
	for program, ended := range map[string]bool{`exec sleep 30`: false, `sleep 30 | read x`: false, `exec <"$0"`: true, `exec 5<>"$0"; read x <&5`: true} {
		cmd := exec.Command("/bin/sh", "-c", program, pipe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		ctx, cancel := context.WithTimeout(t.Context(), map[bool]time.Duration{false: 1500 * time.Millisecond, true: time.Minute}[ended])
		watched, end := Watch(ctx, after, func() Where { return Where{Top: dir} })
		started, began := Starting(watched), time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started(cmd.Process.Pid)
		<-watched.Done()
		if err := end(); (err != nil) != ended || ended && err.Error() != (&PipeError{}).Error() {
			t.Errorf("%s: %v", program, err)
		}
		if took := time.Since(began); program == `exec <"$0"` && took < mostPatience*after {
			t.Errorf("it is ended after %v", took)
		}
		cancel()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}
}

func TestWhatWaitsForAFileToOpen(t *testing.T) {
	at := doing{known: true, ticks: 7, asleep: true, asked: true, opens: true}
	for name, c := range map[string]struct {
		change func(d *doing)
		waits  bool
	}{
		"all the same":                {func(*doing) {}, true},
		"it is not said at all":       {func(d *doing) { d.known = false }, false},
		"it works":                    {func(d *doing) { d.ticks++ }, false},
		"it waits for a disk":         {func(d *doing) { d.asleep = false }, false},
		"it waits for something else": {func(d *doing) { d.opens = false }, false},
		"it is not said for what":     {func(d *doing) { d.opens, d.asked = false, false }, true},
	} {
		then := at
		c.change(&then)
		if at.waits(then) != c.waits || then.waits(at) != c.waits {
			t.Errorf("%s: not %t", name, c.waits)
		}
	}
}

// A git that is being started does not wait at a pipe.
func TestAGitThatHasNotStartedIsNotEnded(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		watched, end := Watch(ctx, Patience, func() Where { return Where{Top: dir} })
		Starting(watched)
		<-watched.Done()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// What ends in time, or is ended by others, is not looked at.
func TestAGitThatEndsInTimeIsNotLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		look := func() Where { t.Error("it is looked at"); return Where{} }
		_, end := Watch(t.Context(), Patience, look)
		time.Sleep(Patience - 1)
		if err := end(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched, end := Watch(ctx, Patience, look)
		cancel()
		<-watched.Done()
		if err := end(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
	})
}
