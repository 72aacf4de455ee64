package plumbing

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGitThatWaitsAtAPipeIsEnded(t *testing.T) {
	for _, c := range []struct{ pipe, says string }{
		{"sub/.gitignore", "./sub/.gitignore"},
		{".gitattributes", "./.gitattributes"},
		{"sub/.git/refs/heads/main", "./sub/.git/refs/heads/main"},
		{".git/HEAD", "./.git/HEAD"},
		{"sub/.git/objects/aa", ""},
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
