package sandbox

import (
	"slices"

	"rnix/internal/hosts"
	"rnix/types"
)

// Settings are what a person, the files of a project and an agent say of how commands are confined. Together with a Place they are a Policy.
// Part of the on-disk format.
type Settings struct {
	Level Level `json:"level,omitempty"` // empty = not said
	Net   Net   `json:"net,omitempty"`   // empty = not said
	// Hosts are those that commands may reach where Net is hosts; nil = not said.
	Hosts []hosts.Said `json:"hosts,omitzero"`
	Paths
	// Also are paths that were said elsewhere: what is not allowed by each of them and by Paths is not allowed.
	Also []Paths `json:"also,omitempty"`
	// Protect are absolute, clean paths that are not written nor made.
	Protect []string `json:"protect,omitempty"`
	// Optional says that commands run unconfined on a host that can confine nothing; else they are refused there.
	Optional bool `json:"optional,omitempty"`
	// Within are trees: commands write a work directory only if it lies in one of them, or was made by Rnix for their process. nil = in any
	// place that is not Rnix's own.
	Within []string `json:"within,omitzero"`
	// Bounds limit what all of them use together, also where nothing else confines them.
	Bounds types.Bounds `json:"bounds,omitzero"`
}

// Paths are absolute, clean paths of files or trees, besides those that every command has. The longest one that contains a file decides.
type Paths struct {
	Read  []string `json:"read,omitempty"`  // to read even if a directory above is hidden
	Write []string `json:"write,omitempty"` // to read and write
	Hide  []string `json:"hide,omitempty"`  // to hide
}

func (p Paths) with(o Paths) Paths {
	join := func(a, b []string) []string { return sortPaths(slices.Concat(a, b)) }
	return Paths{join(p.Read, o.Read), join(p.Write, o.Write), join(p.Hide, o.Hide)}
}

func (p Paths) equal(o Paths) bool {
	return slices.Equal(p.Read, o.Read) && slices.Equal(p.Write, o.Write) && slices.Equal(p.Hide, o.Hide)
}

// Usual returns the settings that hold if nobody says anything: confined by the best rung, and no network.
func Usual() Settings { return Settings{Level: LevelAuto, Net: NetNone} }

// Off says whether nothing is confined.
func (s Settings) Off() bool { return s.Level == LevelOff }

// Text returns the settings in a few words for people.
func (s Settings) Text() string {
	switch {
	case s.Level == "":
		return ""
	case s.Off():
		return "off"
	case s.Net == NetNone:
		return string(s.Level) + ", no network"
	case s.Net == NetOpen:
		return string(s.Level) + ", network open"
	}
	return string(s.Level) + ", network to hosts"
}

// Check returns an INVALID error that names the field, its value and what is wanted, or nil. What is not said is right.
func (s Settings) Check() error {
	p := Everything()
	if s.Level != "" {
		p.Level = s.Level
	}
	if p.Net = s.Net; s.Net == "" {
		p.Net = NetNone
	}
	p.Hide = slices.Concat(s.Protect, s.Within)
	for _, paths := range s.all() {
		p.Read, p.Write, p.Hide = append(p.Read, paths.Read...), append(p.Write, paths.Write...), append(p.Hide, paths.Hide...)
	}
	if err := p.Check(); err != nil {
		return err
	}
	return hosts.Check(s.Hosts)
}

// all returns the paths that were said, each in one place.
func (s Settings) all() []Paths { return append([]Paths{s.Paths}, s.Also...) }

// With returns s with what o says: its level, network and bounds in place of those of s, its paths and hosts besides them.
func (s Settings) With(o Settings) Settings {
	if o.Level != "" {
		s.Level = o.Level
	}
	if o.Net != "" {
		s.Net = o.Net
	}
	if o.Hosts != nil {
		s.Hosts = hosts.Add(append([]hosts.Said{}, s.Hosts...), o.Hosts)
	}
	s.Optional = s.Optional || o.Optional
	s.Bounds = s.Bounds.With(o.Bounds)
	s.Paths, s.Protect = s.with(o.Paths), sortPaths(slices.Concat(s.Protect, o.Protect))
	return s
}

// Tighten returns s with a level, a network and bounds, as far as these allow no more. Hosts, where they are not nil, are all that is left of those of s; without a
// network they are one of hosts.
func (s Settings) Tighten(level Level, net Net, bounds types.Bounds, said []hosts.Said) Settings {
	o := s.With(Settings{Level: level, Net: net, Bounds: bounds})
	if said != nil {
		if o.Hosts = said; net == "" {
			o.Net = NetHosts
		}
	}
	return MeetSettings(s, o)
}

// MeetSettings returns the settings that allow what both allow. Both must have a level and a network.
func MeetSettings(a, b Settings) Settings {
	out := Settings{
		Level: later(levels, a.Level, b.Level), Net: nets[min(slices.Index(nets, a.Net), slices.Index(nets, b.Net))], Paths: a.Paths,
		Protect: sortPaths(slices.Concat(a.Protect, b.Protect)), Optional: a.Optional && b.Optional, Within: a.Within, Bounds: a.Bounds.Meet(b.Bounds),
	}
	switch {
	case a.Net == NetOpen && (b.Net != NetOpen || a.Hosts == nil):
		out.Hosts = b.Hosts
	case b.Net == NetOpen && (a.Net != NetOpen || b.Hosts == nil):
		out.Hosts = a.Hosts
	case a.Hosts != nil && b.Hosts != nil:
		out.Hosts = append([]hosts.Said{}, hosts.MeetSaid(a.Hosts, b.Hosts)...)
	}
	for _, paths := range append(slices.Clone(a.Also), b.all()...) {
		if !slices.ContainsFunc(out.all(), paths.equal) {
			out.Also = append(out.Also, paths)
		}
	}
	switch {
	case a.Within == nil:
		out.Within = b.Within
	case b.Within != nil:
		out.Within = append([]string{}, meetTrees(a.Within, b.Within)...)
	}
	return out
}

// Below returns the settings of what commands with settings s start that run at a place, which was made for their process if made says so: no
// more than they have. It writes no directory outside of theirs, unless that is made for it.
func (s Settings) Below(place Place, made bool) Settings {
	if s.Off() {
		return s
	}
	p := s.Policy(place, made)
	// All of them, not only those below the work directory: the repository of a part of a project lies above it.
	s.Protect = sortPaths(slices.Concat(s.Protect, p.Protect))
	if s.Within = []string{}; p.Allows(place.Work, AccessWrite) {
		s.Within = []string{place.Work}
	}
	return s
}

// Policy returns the policy of commands at a place. made says that Rnix has made the work directory for their process.
func (s Settings) Policy(place Place, made bool) Policy {
	if s.Off() {
		return Everything()
	}
	if place.ReadOnly = !made && !s.writes(place); s.Within != nil && !made && !slices.ContainsFunc(s.Within, func(tree string) bool { return within(place.Git.Top, tree) }) {
		place.Git = Git{} // no right follows from one above what it may write
	}
	at := Standard(place)
	at.Level, at.Net, at.Protect = s.Level, s.Net, append(at.Protect, s.Protect...)
	if s.Net == NetHosts {
		at.Hosts = hosts.RulesOf(s.Hosts).Strings()
	}
	if n := s.Bounds.Processes; n != 0 { // also where only a limit of each command can be enforced
		at.Limits.Processes = int64(max(0, n))
	}
	var out Policy
	for i, paths := range s.all() {
		p := at
		p.Write, p.Hide = slices.Concat(at.Write, paths.Write), slices.Concat(at.Hide, paths.Hide)
		for _, path := range paths.Read {
			if !p.Allows(path, AccessRead) { // else it would take the right to write
				p.Read = append(slices.Clone(p.Read), path)
			}
		}
		if i == 0 {
			out = p.Canonical()
		} else {
			out = Meet(out, p)
		}
	}
	return out
}

// writes says whether commands may write the work directory of a place which was not made for them.
func (s Settings) writes(place Place) bool {
	in := func(trees []string) bool {
		return slices.ContainsFunc(trees, func(tree string) bool { return tree != "" && within(place.Work, tree) })
	}
	for _, paths := range s.all() {
		if in(paths.Hide) {
			return false
		}
	}
	switch {
	case in(s.Protect):
		return false
	case s.Within == nil:
		return !in(place.Private)
	}
	return in(s.Within) && !in(below(place.Home, secrets)) && !in(spools)
}
