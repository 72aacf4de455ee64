package sandbox

import (
	"fmt"
	"strings"
)

// Rung is a mechanism that confines.
type Rung string

// The rungs, and none.
const (
	RungNone     Rung = ""
	RungLandlock Rung = "landlock"
	RungBwrap    Rung = "bwrap"
)

// minABI is the Landlock ABI that the rung needs: 6 brought the scopes for signals and abstract sockets (Linux 6.12).
const minABI = 6

// Host is what Probe has found out. The zero Host can confine nothing.
type Host struct {
	Bwrap    Proof `json:"bwrap"`
	Landlock Proof `json:"landlock"`
	// Program is the absolute path of bubblewrap, empty without one.
	Program string `json:"program,omitempty"`
	// Pins says that bubblewrap mounts what a descriptor is (0.10.0, or a distribution's 0.8.0 with the correction of CVE-2024-42472).
	Pins bool `json:"pins,omitempty"`
	// ABI is the version of Landlock that the kernel offers, 0 without it.
	ABI int    `json:"abi,omitempty"`
	Key string `json:"key,omitempty"` // as HostKey returned it when the host was probed
}

// Proof says whether a rung works, and why not.
type Proof struct {
	Proved bool   `json:"proved"`
	How    string `json:"how,omitempty"`    // what was run and observed
	Reason string `json:"reason,omitempty"` // why it is not proved
	// Untried says that the test itself could not be made, which may be different the next time.
	Untried bool   `json:"untried,omitempty"`
	Fix     string `json:"fix,omitempty"` // what a person can do about it, in lines
}

// Without returns a host that lacks a rung, for tests and for people who do not want it.
func (h Host) Without(r Rung) Host {
	off := Proof{Reason: "left out"}
	switch r {
	case RungBwrap:
		h.Bwrap = off
	case RungLandlock:
		h.Landlock = off
	}
	return h
}

// Best returns the strictest rung that is proved.
func (h Host) Best() Rung {
	switch {
	case h.Bwrap.Proved:
		return RungBwrap
	case h.Landlock.Proved:
		return RungLandlock
	}
	return RungNone
}

// Choose returns the rung for a level but off, or why there is none.
func (h Host) Choose(level Level) (Rung, error) {
	var missing []string
	if level != LevelLandlock {
		if h.Bwrap.Proved {
			return RungBwrap, nil
		}
		missing = append(missing, "bubblewrap: "+reasonOf(h.Bwrap))
	}
	if level != LevelBwrap {
		if h.Landlock.Proved {
			return RungLandlock, nil
		}
		missing = append(missing, "Landlock: "+reasonOf(h.Landlock))
	}
	return RungNone, fmt.Errorf("cannot confine commands on this host (%s)", strings.Join(missing, "; "))
}

func reasonOf(p Proof) string {
	if p.Reason == "" {
		return "not probed"
	}
	return p.Reason
}

// tooOld is why a bubblewrap does not know an option.
const tooOld = "this bubblewrap is too old"

// knownFailure is a failure of bubblewrap with a reason and a fix.
type knownFailure struct{ text, reason, fix string }

var knownFailures = []knownFailure{
	{"setting up uid map", "the system does not let unprivileged programs map users in a user namespace", apparmorFix},
	{"Failed RTM_NEWADDR", "the system does not let unprivileged programs configure a network namespace", apparmorFix},
	{"No permissions to create", "namespaces are denied here, as by the default seccomp filter of containers",
		"nothing to fix if Landlock is proved; else run the container with: --security-opt seccomp=unconfined"},
	{"Creating new namespace failed", "the kernel refuses new namespaces", "sysctl user.max_user_namespaces must not be 0"},
	{"Can't mount proc", "a new /proc cannot be mounted here, as in containers that mask parts of /proc",
		"nothing to fix if Landlock is proved; else run the container with: --security-opt systempaths=unconfined"},
	{"Can't find source path /proc/self/fd", "what was to be mounted was replaced meanwhile; try again", "try again"},
	{"Race condition", "what was to be mounted was replaced meanwhile; try again", "try again"},
	{"Unknown option", tooOld, "install bubblewrap 0.8.0 or newer"},
}

// apparmorFix are the lines for Ubuntu 23.10 and newer, where kernel.apparmor_restrict_unprivileged_userns is 1. The profile is
// unconfined but for the right to make user namespaces, as Ubuntu ships it for other programs.
const apparmorFix = `on Ubuntu, allow bubblewrap to make user namespaces (as root):
cat >/etc/apparmor.d/bwrap <<'END'
abi <abi/4.0>,
include <tunables/global>
profile bwrap /usr/bin/bwrap flags=(unconfined) {
  userns,
  include if exists <local/bwrap>
}
END
apparmor_parser -r /etc/apparmor.d/bwrap`

// explainBwrap returns the reason and the fix for what bubblewrap printed.
func explainBwrap(stderr string) Proof {
	text := strings.TrimSpace(stderr)
	for _, k := range knownFailures {
		if strings.Contains(text, k.text) {
			return Proof{Reason: k.reason + " (" + firstLine(text) + ")", Fix: k.fix}
		}
	}
	return Proof{Reason: "bubblewrap failed: " + firstLine(text)}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}
