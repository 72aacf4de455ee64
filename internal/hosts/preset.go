package hosts

import (
	"slices"
	"strings"
)

// Preset is a name for the hosts that a tool needs to fetch what it installs.
type Preset struct {
	Name  string
	Doc   string
	Hosts []string
	// WayOut says that what was read can be published there, by anyone who has an account.
	WayOut bool
}

// Presets returns all presets, in the order of their names.
func Presets() []Preset {
	fields := strings.Fields
	return []Preset{
		{"apt", "packages of Debian and Ubuntu", fields("deb.debian.org security.debian.org archive.ubuntu.com security.ubuntu.com ports.ubuntu.com"), false},
		{"cargo", "crates of Rust, and its toolchains", fields("index.crates.io:443 static.crates.io:443 static.rust-lang.org:443"), false},
		{"github", "repositories, releases and the API of GitHub", fields("github.com:443 api.github.com:443 codeload.github.com:443 *.githubusercontent.com:443"), true},
		{"go", "modules of Go, and their checksums", fields("proxy.golang.org:443 sum.golang.org:443"), false},
		{"npm", "packages of Node.js", fields("registry.npmjs.org:443 registry.yarnpkg.com:443"), false},
		{"pypi", "packages of Python", fields("pypi.org:443 files.pythonhosted.org:443"), false},
	}
}

// PresetNames returns the names of the presets.
func PresetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Expand returns the hosts of a preset, or what is none itself.
func Expand(text string) []string {
	all := Presets()
	if i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == text }); i >= 0 {
		return all[i].Hosts
	}
	return []string{text}
}

// WaysOut returns the names of the presets by whose hosts what was read can be published, of which some host is among these.
func WaysOut(texts []string) (names []string) {
	rules, _ := ParseAll(texts) // what is no rule reaches nothing
	for _, p := range Presets() {
		if of, err := ParseAll(p.Hosts); err == nil && p.WayOut && len(Meet(rules, of)) > 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// Said is a host, or the name of a preset, and where it was said. Part of the on-disk format.
type Said struct {
	Host string `json:"host"`
	From string `json:"from,omitempty"` // such as --allow-host; empty = not known
}

// Say returns hosts that were said in one place.
func Say(from string, texts ...string) (out []Said) {
	for _, text := range texts {
		out = append(out, Said{text, from})
	}
	return out
}

// Add returns what two lists say, each host once; what was said first counts.
func Add(a, b []Said) []Said {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.ContainsFunc(out, func(o Said) bool { return o.Host == s.Host }) {
			out = append(out, s)
		}
	}
	return out
}

// RulesOf returns the rules that were said. What is no rule, which Check refuses, lets nothing be reached.
func RulesOf(said []Said) Rules {
	var out Rules
	for _, s := range said {
		if rules, err := ParseAll([]string{s.Host}); err == nil {
			out = append(out, rules...)
		}
	}
	return out.canonical()
}

// Check returns the INVALID error of the first that is neither a rule nor a preset.
func Check(said []Said) error {
	for _, s := range said {
		if _, err := ParseAll([]string{s.Host}); err != nil {
			return err
		}
	}
	return nil
}

// MeetSaid returns what lets a program reach what both let it reach. A host that the other list has, too, stays as it was said; of others stays the narrower
// one.
func MeetSaid(a, b []Said) []Said {
	var out []Said
	add := func(s Said) { out = Add(out, []Said{s}) }
	rest := func(list, other []Said) (out []Said) {
		for _, s := range list {
			if slices.ContainsFunc(other, func(o Said) bool { return o.Host == s.Host }) {
				add(s)
			} else {
				out = append(out, s)
			}
		}
		return out
	}
	onlyA, onlyB := rest(a, b), rest(b, a)
	pairs := func(as, bs []Said) {
		for _, x := range as {
			for _, y := range bs {
				rx, ry := RulesOf([]Said{x}), RulesOf([]Said{y})
				for _, r := range Meet(rx, ry) {
					from := x.From
					if !slices.Contains(rx, r) {
						from = y.From
					}
					add(Said{r.String(), from})
				}
			}
		}
	}
	pairs(onlyA, b)
	pairs(a, onlyB)
	slices.SortFunc(out, func(a, b Said) int { return strings.Compare(a.Host, b.Host) })
	return out
}
