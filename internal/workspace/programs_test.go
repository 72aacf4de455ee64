package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What an agent leaves in the repository for the user's next git to run is told, and what was there before is not.
func TestProgramsThatAnAgentPlantsAreTold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{"a": "1\n"})
	hook := func(name, text string) {
		b.write(repo, map[string]string{".git/hooks/" + name: text})
		must(t, os.Chmod(filepath.Join(repo, ".git/hooks", name), 0o755))
	}
	b.user(repo, "config", "filter.lfs.clean", "git-lfs clean")
	b.user(repo, "config", "core.editor", "vi")
	hook("pre-commit", "#!/bin/sh\nmake lint\n")
	hook("post-commit", "#!/bin/sh\ntrue\n")
	tree := b.plant(repo)
	news := func() []string {
		t.Helper()
		got, err := b.grove().News(t.Context(), b.id, tree)
		must(t, err)
		return got
	}
	b.user(tree.Dir, "config", "user.name", "somebody") // runs nothing
	b.user(tree.Dir, "config", "alias.st", "status")
	b.user(repo, "config", "core.fsmonitor", "true") // git's own
	b.write(repo, map[string]string{".git/hooks/update.sample": "#!/bin/sh\n"})
	if got := news(); got != nil {
		t.Errorf("nothing was planted, and %q is told", got)
	}
	b.user(tree.Dir, "config", "core.fsmonitor", "/tmp/x")
	b.user(tree.Dir, "config", "core.editor", "/tmp/vi")
	b.user(tree.Dir, "config", "alias.co", "!x")
	b.user(tree.Dir, "config", "include.path", "/tmp/more")
	hook("pre-commit", "#!/bin/sh\nmake lint; x\n")
	hook("post-merge", "#!/bin/sh\n")
	want := []string{"alias.co", "core.editor", "core.fsmonitor", "include.path", "the hook post-merge", "the hook pre-commit"}
	if got := news(); !slices.Equal(got, want) {
		t.Errorf("told is %q, want %q", got, want)
	}
	tree.Programs = "" // of an earlier version
	if got := news(); got != nil {
		t.Errorf("it is not known what there was, and %q is told", got)
	}
}
