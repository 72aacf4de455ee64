package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/types"
)

// What an agent has put where git opens a file keeps nobody from going on, and is named.
func TestAPipeAtWhichGitWaitsIsNamed(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	dir := added(t, m, clone, "s")
	m.git.patience = 50 * time.Millisecond
	pipe := filepath.Join(dir, "lib", ".gitignore")
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o700), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- m.Teardown(context.Background(), "s") }()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "./lib/.gitignore is a pipe, at which git waits for ever: remove it") {
			t.Errorf("Teardown = %v, %s", err, types.CodeOf(err))
		}
	case <-time.After(30 * time.Second):
		t.Error("it waits")
		if f, err := os.OpenFile(pipe, os.O_RDWR, 0); err == nil { // so that it ends
			_ = os.Remove(pipe)
			_ = f.Close()
		}
		<-done
	}
	if !exists(filepath.Join(dir, "README.md")) {
		t.Error("it is removed")
	}
}

// A git that takes long is not ended for a pipe that it does not open.
func TestASlowGitIsNotEndedForAPipe(t *testing.T) {
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skip("needs a system that says what a process does")
	}
	dir, bin := t.TempDir(), t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, ".git"), 0o700), syscall.Mkfifo(filepath.Join(dir, ".git", "HEAD"), 0o600),
		os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nsleep 1\necho said\n"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	out, err := runner{run: execute, patience: 50 * time.Millisecond}.git(t.Context(), nil, "-C", dir, "status")
	if err != nil || string(out) != "said\n" {
		t.Errorf("%q, %v", out, err)
	}
}
