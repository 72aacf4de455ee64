package worktree

import (
	"context"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// foreign is what the configuration of a repository itself, which everybody who works there can write,
// says about programs and remotes.
type foreign struct {
	quiet    []plumbing.Setting // settings that switch its filters off
	shut     []plumbing.Setting // settings without which a git that misses an object would run one of programs
	programs []string           // keys that name a program that a fetch would run
	included []string           // keys that include files under a condition: what these say is seen only where it holds
	remote   string             // the URL of origin
	// remotes are the URLs of all remotes, those for pushing too, by their names. One that is reached
	// through a program has one of the kind that plumbing.HelperURL knows.
	remotes   map[string][]string
	rewritten bool // it says that URLs mean others
}

// configOf reads the configuration of a repository.
func (r runner) configOf(ctx context.Context, where ...string) (foreign, error) {
	out, err := r.git(ctx, nil, append(slices.Clone(where), plumbing.ListConfig()...)...)
	if err != nil {
		return foreign{}, err
	}
	f := readForeign(plumbing.ParseConfig(out))
	f.quiet = append(f.quiet, f.shut...)
	return f, nil
}

// readForeign reads a configuration.
func readForeign(c plumbing.Config) foreign {
	f := foreign{remotes: map[string][]string{}, quiet: c.Local().Filters("clean", "smudge", "process", "required").FiltersOff()}
	f.remote, _ = c.Get("remote.origin.url")
	for _, e := range c {
		if remote, ok := strings.CutPrefix(e.Section(), "remote."); ok {
			switch e.Name() {
			case "url", "pushurl":
				f.remotes[remote] = append(f.remotes[remote], e.Value)
			case "vcs":
				f.remotes[remote] = append(f.remotes[remote], e.Value+"::")
			}
		}
	}
	protocols := []string{"protocol", "protocol.file", "protocol.git", "protocol.ssh", "protocol.http", "protocol.https"}
	for _, e := range c.Local() {
		section, name := e.Section(), e.Name()
		if e.RunsOnFetch() {
			f.programs = append(f.programs, e.Key)
		}
		if strings.HasPrefix(section, "url.") && (name == "insteadof" || name == "pushinsteadof") {
			f.rewritten = true
		}
		if strings.HasPrefix(section, "includeif.") {
			f.included = append(f.included, e.Key)
		}
		if strings.HasPrefix(section, "protocol.") {
			protocols = append(protocols, section)
		}
	}
	if len(f.programs) > 0 { // git fetches objects that are missing by itself, if a repository says so
		for _, p := range protocols {
			f.shut = append(f.shut, plumbing.Set(p+".allow", "never"))
		}
	}
	return f
}
