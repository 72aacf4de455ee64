// Package gitbox confines the git that Rnix runs itself: each run writes and starts what its call says, and nothing else, whatever the
// configuration, hooks and attributes of a repository say. It owns what was found out about the git of this host. What a call may do is
// sandbox.GitCall.Policy, which is pure.
package gitbox

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// probeTime bounds each run of git by which it is found out whether it can be confined.
const probeTime = 20 * time.Second

// Boxes confines gits. Its fields are set before it is used. Safe for concurrent use.
type Boxes struct {
	Host  func() sandbox.Host // what this host can confine with
	Home  string              // the user's
	Data  string              // the data directory, in which agents write
	Start func(context.Context, proc.Spec) (*proc.Child, error)
	Log   *slog.Logger

	mu sync.Mutex // held while it is found out
	// key is of what was found out: see sandbox.HostKey.
	// +checklocks:mu
	key string
	// +checklocks:mu
	git sandbox.GitProgram
	// err is why git cannot be confined here.
	// +checklocks:mu
	err error
	// wide says that git does not run if it may read nothing but its own and what a call says, so that it has to read everything.
	// +checklocks:mu
	wide bool
	// +checklocks:mu
	host sandbox.Host
}

// open returns what confines nothing.
func open() proc.Box { return proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}} }

// Box returns how a child of the kind "git" is confined: by Landlock, to what its call says. Where Landlock does not work, or not with this git, it
// runs as it is: its settings switch off what a repository names, and a person must be able to go on. So does a call that reads little, as far as reading
// goes, with a git that does not run so. A git without a call is refused.
func (s *Boxes) Box(spec proc.Spec) (proc.Box, error) {
	if spec.Git == nil {
		return open(), types.Errorf(types.ErrInternal, "Start", spec.Path, "a git was to be started that does not say on what it works")
	}
	host, git, wide, err := s.here(spec)
	if err != nil {
		return open(), nil
	}
	call := *spec.Git
	if wide {
		call.Read = nil
	}
	call.Agents = append(slices.Clone(call.Agents), s.Data)
	if call.Starts == sandbox.StartsTools {
		call.Tools = slices.Concat(call.Tools, sandbox.HomeTools(s.Home), directories(spec.Env))
	}
	plan, err := sandbox.MakePlan(call.Policy(git), host, call.Files(sandbox.Disk{}))
	return proc.Box{Plan: plan}, err
}

// Reason returns why git is not confined here; nil if it is, or if none was run yet.
func (s *Boxes) Reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// directories returns where an environment looks for programs.
func directories(env []string) (dirs []string) {
	for _, kv := range env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				if dir = resolved(dir); filepath.IsAbs(dir) && dir != "/" {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	return dirs
}

// here returns the git that a child is, the host that can confine it, and whether it has to read everything; or why it cannot be confined. It finds out the
// first time, and when the machine or one of the programs is another.
func (s *Boxes) here(spec proc.Spec) (host sandbox.Host, git sandbox.GitProgram, wide bool, err error) {
	path := resolved(spec.Path)
	key := sandbox.HostKey(path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == key {
		return s.host, s.git, s.wide, s.err
	}
	s.wide = false
	s.host, s.git = s.Host(), sandbox.GitProgram{Path: path}
	if !s.host.Landlock.Proved {
		s.err = fmt.Errorf("nothing can be confined by Landlock: %s", s.host.Landlock.Reason)
	} else {
		var narrow error
		s.git, narrow, s.err = s.prove(s.host, path)
		if s.wide = narrow != nil; s.wide && s.err == nil {
			s.Log.Warn("git reads everything also where it is to read a repository alone", "git", path, "reason", narrow)
		}
	}
	if s.key = key; s.host.Landlock.Untried {
		s.key = ""
	}
	if s.err != nil {
		s.Log.Warn("git is not confined, only told by its settings to run nothing", "git", path, "reason", s.err)
	}
	return s.host, s.git, s.wide, s.err
}

// prove finds out how a git is installed, and runs it confined: it must run, and start nothing. narrow is why it does not run if it reads nothing but its own.
func (s *Boxes) prove(host sandbox.Host, path string) (git sandbox.GitProgram, narrow, err error) {
	git.Path = path
	if git.Loader, err = loaderOf(path); err != nil {
		return git, nil, err
	}
	run := func(call *sandbox.GitCall, program string, args ...string) (string, int, error) {
		box := proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}
		if call != nil {
			plan, err := sandbox.MakePlan(call.Policy(git), host, sandbox.Disk{})
			if err != nil {
				return "", 0, err
			}
			box.Plan = plan
		}
		var out bytes.Buffer
		child, err := s.Start(context.Background(), proc.Spec{Kind: proc.KindGit, Path: program, Args: args, Dir: "/", Stdout: &out, Timeout: probeTime, Box: &box,
			Env: []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CEILING_DIRECTORIES=/", "PATH=/usr/bin:/bin"}})
		if err != nil {
			return "", 0, err
		}
		exit := child.Wait()
		return strings.TrimSpace(out.String()), exit.Code, exit.Err
	}
	core, code, err := run(nil, path, "--exec-path")
	if err != nil || code != 0 || !filepath.IsAbs(core) {
		return git, nil, errors.Join(fmt.Errorf("it does not say where its own programs are: exit status %d, %q", code, core), err)
	}
	git.Core = resolved(core)
	if git.Loader != "" {
		if said, code, err := run(nil, git.Loader, "--list", path); err == nil && code == 0 { // else it is seen below whether that does harm
			git.Libs = librariesIn(said)
		}
	}
	runs := func(call *sandbox.GitCall) error {
		if again, code, err := run(call, path, "--exec-path"); err != nil || again != core {
			return errors.Join(fmt.Errorf("it does not run confined: exit status %d", code), err)
		}
		return nil
	}
	for _, call := range []sandbox.GitCall{{Starts: sandbox.StartsNothing}, {Starts: sandbox.StartsGit}} {
		if err := runs(&call); err != nil {
			return git, nil, err
		}
		const mark = 77
		if _, code, err := run(&call, path, "-c", fmt.Sprintf("alias.rnix=!exit %d", mark), "rnix"); err != nil || code == mark || code == 0 {
			return git, nil, errors.Join(errors.New("confined it can start other programs"), err)
		}
	}
	return git, runs(&sandbox.GitCall{Starts: sandbox.StartsNothing, Read: []string{}}), nil
}

// librariesIn returns the files that a dynamic linker says that it would load.
func librariesIn(said string) (files []string) {
	for word := range strings.FieldsSeq(said) {
		if filepath.IsAbs(word) {
			files = append(files, resolved(word))
		}
	}
	return files
}

// loaderOf returns the dynamic linker of a program; "" if it needs none.
func loaderOf(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("it is started by another program, as a script is: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		const most = 4096
		if p.Filesz > most {
			return "", errors.New("its dynamic linker has a name that is too long")
		}
		name := make([]byte, p.Filesz)
		if _, err := p.ReadAt(name, 0); err != nil {
			return "", fmt.Errorf("its dynamic linker cannot be read: %w", err)
		}
		return resolved(strings.TrimRight(string(name), "\x00")), nil
	}
	return "", nil
}

func resolved(path string) string {
	if p, err := filepath.EvalSymlinks(path); err == nil {
		return p
	}
	return path
}
