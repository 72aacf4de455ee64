package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"rnix/internal/hosts"
	"rnix/types"
)

// Plan is how a policy is enforced on a host, as data. The zero Plan cannot be opened.
type Plan struct {
	Policy  Policy   `json:"policy"` // resolved
	Rung    Rung     `json:"rung"`   // RungNone: level off, nothing is enforced
	Program string   `json:"program,omitempty"`
	Argv    []string `json:"argv,omitempty"`   // of bubblewrap, up to the command
	Pinned  bool     `json:"pinned,omitempty"` // what bubblewrap mounts is opened before, and cannot be replaced meanwhile
	Rules   []Rule   `json:"rules,omitempty"`  // of Landlock
	Network bool     `json:"network"`          // the network is that of the host
	Unix    bool     `json:"unix"`             // Unix sockets may be made
	// Held are empty directories to make before the command starts, and to remove after it: the names of protected paths that do
	// not exist. What programs read as a file is held by one that says nothing (heldFiles).
	Held []string `json:"held,omitempty"`
	// Watched are protected paths that this rung cannot protect. Box.Close says which of them have changed.
	Watched []string `json:"watched,omitempty"`
	// Gaps are what this rung does not enforce, in sentences.
	Gaps []string `json:"gaps,omitempty"`
}

// MakePlan returns how a policy is enforced. It resolves the policy, and fails with PERMISSION if the host cannot enforce all of
// it; the error says what cannot be enforced and what to do. It changes nothing.
func MakePlan(policy Policy, host Host, files Files) (Plan, error) {
	policy, err := policy.Resolve(files)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Policy: policy, Unix: len(policy.Sockets) > 0, Network: policy.Net == NetOpen}
	if policy.Level == LevelOff {
		plan.Network, plan.Unix = true, true
		plan.Gaps = []string{"nothing is enforced: the sandbox is off"}
		return plan, nil
	}
	if plan.Rung, err = host.Choose(policy.Level); err != nil {
		return Plan{}, refuse("%w; see: rnix doctor", err)
	}
	if policy.Net == NetHosts && plan.Rung == RungLandlock {
		return Plan{}, refuse("%w", ErrHosts)
	}
	if plan.Unix && (plan.Rung == RungLandlock || !slices.Equal(policy.Sockets, []string{"/"})) {
		return Plan{}, refuse("cannot allow single Unix sockets: %s cannot tell them apart; remove them from the policy", plan.Rung)
	}
	if plan.Rung == RungBwrap {
		if policy.Run != nil {
			return Plan{}, refuse("cannot limit what is executed with bubblewrap; use the level landlock")
		}
		return plan, planBwrap(&plan, host, files)
	}
	return plan, planLandlock(&plan, files)
}

// ErrHosts is why no network of single hosts can be had.
var ErrHosts = errors.New("cannot limit the network to single hosts with Landlock, which knows ports and no addresses; install bubblewrap (see: rnix doctor), or use the network none or open")

func refuse(format string, args ...any) error {
	return types.Errorf(types.ErrPermission, "sandbox", "", format, args...)
}

// point is a path where the access changes.
type point struct {
	path          string
	access, above Access
}

// points returns where the access of a canonical policy changes, directories before what is in them.
func (p Policy) points() []point {
	var out []point
	for _, path := range sortPaths(slices.Concat(p.Read, p.Write, p.Hide, p.Protect)) {
		above := AccessNone
		if path != "/" {
			above = p.Access(parent(path))
		}
		out = append(out, point{path, p.Access(path), above})
	}
	return out
}

func parent(path string) string {
	dirs := ancestors(path)
	return dirs[len(dirs)-1]
}

// commonGaps are those of every rung.
func (p *Plan) commonGaps() {
	if p.Network {
		p.Gaps = append(p.Gaps, "the network is open: the command reaches every host that this one reaches, and services on its loopback")
	}
	if p.Unix {
		p.Gaps = append(p.Gaps, "every Unix socket in a visible directory can be connected to")
	}
	if p.Policy.Net == NetHosts {
		p.Gaps = append(p.Gaps, "a host that is allowed can pass on what it is sent, and answer for others that share its address")
		for _, name := range hosts.WaysOut(p.Policy.Hosts) {
			p.Gaps = append(p.Gaps, "what commands read can be published at "+name+" by whoever has an account there")
		}
	}
	p.Gaps = append(p.Gaps, "processor time, disk space and, but for sandbox.memory, memory are bounded for each process, not for all of a command's")
}

// Explain returns what the policy lets a command do, in lines for people.
func (p Policy) Explain() string {
	out := ""
	line := func(name string, values []string, none string) {
		if len(values) == 0 {
			values = []string{none}
		}
		for i, v := range values {
			if i > 0 {
				name = ""
			}
			out += fmt.Sprintf("%-10s%s\n", name, v)
		}
	}
	p = p.Canonical()
	line("level", []string{string(p.Level)}, "")
	line("read", p.Read, "nothing but what can be written")
	line("write", p.Write, "nothing")
	line("hidden", p.Hide, "nothing")
	line("protected", p.Protect, "nothing")
	switch p.Net {
	case NetNone:
		line("network", nil, "none")
	case NetOpen:
		line("network", nil, "open: every host")
	default:
		line("network", p.Hosts, "by the proxy, to no host")
	}
	line("sockets", p.Sockets, "none")
	switch {
	case p.Single:
		line("programs", nil, "no other process is started")
	case p.Run != nil:
		line("programs", p.Run, "none")
	}
	var limits []string
	for _, l := range p.Limits.named() {
		if *l.value > 0 {
			limits = append(limits, fmt.Sprintf("%s %d", l.name, *l.value))
		}
	}
	line("limits", limits, "none")
	return out
}
