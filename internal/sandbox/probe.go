package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Run runs a command by a plan, with an empty standard input, waits, and returns its exit status and what it printed on its
// standard error, which may be cut. The error says that it could not be started, as Box.Started returns it, or did not end by itself.
type Run func(ctx context.Context, plan Plan, c Command) (status int, stderr string, err error)

// checkWord is the first argument of the helper when it is the test that runs inside.
const checkWord = "check"

// Probe finds out what this host can confine commands with, by confining one and having it try what it must not do. self is the
// path of this program, bwrap that of bubblewrap, empty if it is not installed. It takes tens of milliseconds; HostKey says when it
// must be repeated.
func Probe(ctx context.Context, run Run, self, bwrap string) Host {
	h := Host{Program: bwrap, ABI: landlockABI(), Key: HostKey(bwrap)}
	if !supported {
		reason := Proof{Reason: "only Linux on amd64 and arm64 can confine commands"}
		h.Bwrap, h.Landlock = reason, reason
		return h
	}
	switch {
	case bwrap == "":
		h.Bwrap = Proof{Reason: "bwrap is not in PATH", Fix: "install it, e.g.: apt install bubblewrap"}
	default:
		h.Pins = true
		if h.Bwrap = prove(ctx, run, RungBwrap, h, self); h.Bwrap.Reason == tooOld { // or only too old for that
			h.Pins = false
			h.Bwrap = prove(ctx, run, RungBwrap, h, self)
		}
	}
	switch {
	case h.ABI == 0:
		h.Landlock = Proof{Reason: "the kernel does not offer Landlock", Fix: "use Linux 6.12 or newer, with landlock in the kernel parameter lsm="}
	case h.ABI < minABI:
		h.Landlock = Proof{Reason: fmt.Sprintf("the kernel offers version %d of Landlock, and %d is needed", h.ABI, minABI), Fix: "use Linux 6.12 or newer"}
	default:
		h.Landlock = prove(ctx, run, RungLandlock, h, self)
	}
	return h
}

// prove runs the test in a box of one rung.
func prove(ctx context.Context, run Run, rung Rung, h Host, self string) Proof {
	failed := func(err error) Proof { return Proof{Reason: "it could not be tried: " + err.Error(), Untried: true} }
	dir, err := os.MkdirTemp("", "rnix-probe-")
	if err != nil {
		return failed(err)
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return failed(err)
	}
	inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return failed(err)
		}
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		return failed(err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return failed(err)
	}
	// As strict as it gets, and on a host that has only this rung.
	h.Bwrap, h.Landlock = Proof{Proved: rung == RungBwrap}, Proof{Proved: rung == RungLandlock}
	policy := Standard(Place{Work: inside, Private: []string{outside}, Tools: []string{self}})
	plan, err := MakePlan(policy, h, Disk{})
	if err != nil {
		return failed(err)
	}
	status, stderr, err := run(ctx, plan, Command{Path: self, Args: []string{Word, checkWord, string(rung), inside, secret, strconv.Itoa(os.Getpid())}, Dir: inside})
	if no, ok := errors.AsType[*notStarted](err); ok && no.bwrap != "" {
		return explainBwrap(no.bwrap)
	}
	switch {
	case err != nil:
		return failed(err)
	case status == 0:
		return Proof{Proved: true, How: "a command in it was refused what is outside, other programs, sockets, namespaces and capabilities"}
	}
	return Proof{Reason: "it does not hold: " + firstLine(strings.TrimSpace(stderr))}
}

// heldNot begins what the test inside prints if something was not refused.
const heldNot = "rnix: not confined: "

// HostKey returns a text that is different whenever Probe could find something else: after a restart of the machine, for another
// user, and for another program that confines, or is confined.
func HostKey(program string) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fmt.Sprintf("%s %d %s", strings.TrimSpace(string(boot)), os.Getuid(), identity(program))
}

// FindBwrap returns the path of bubblewrap in a PATH, or nothing. Directories that are not absolute do not count, nor do those within
// one of the trees: a command may have put its own program there.
func FindBwrap(path string, except ...string) string {
next:
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(dir, "bwrap"))
		if err != nil {
			continue
		}
		for _, tree := range except {
			if within(file, tree) {
				continue next
			}
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}
