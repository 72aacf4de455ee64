package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

func TestARepositoryWithConditionsOfItsOwnIsRefused(t *testing.T) {
	_, clone := origin(t)
	note := filepath.Join(t.TempDir(), "ran")
	write(t, filepath.Join(clone, ".gitattributes"), "* filter=x\n")
	git(t, clone, "add", ".")
	git(t, clone, "commit", "-qm", "attributes")
	write(t, filepath.Join(clone, ".git", "more"), "[filter \"x\"]\n\tsmudge = touch "+note+"; cat\n")
	git(t, clone, "config", "includeIf.gitdir:**/worktrees/**.path", "more")
	m := manager(t, Options{})
	_, err := m.Provision(context.Background(), ProvisionSpec{SessionID: "s", LeafName: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "s", SkipBaseFetch: true})
	if types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "includeif.gitdir:**/worktrees/**.path") {
		t.Errorf("Provision = %v", err)
	}
	if exists(note) {
		t.Error("the filter was run")
	}
}

func TestAnObjectThatIsMissingIsNotFetchedByAProgramOfTheRepository(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	dir := added(t, m, clone, "s")
	note := filepath.Join(t.TempDir(), "ran")
	blob := git(t, clone, "rev-parse", "HEAD:README.md")
	for _, kv := range [][2]string{{"core.repositoryFormatVersion", "1"}, {"extensions.partialClone", "origin"}, {"remote.origin.promisor", "true"},
		{"remote.origin.uploadpack", "touch " + note + "; false"}, {"protocol.file.allow", "always"}} {
		git(t, clone, "config", kv[0], kv[1])
	}
	if err := os.Remove(filepath.Join(clone, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Provision(context.Background(), ProvisionSpec{SessionID: "t", LeafName: "t", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "t", SkipBaseFetch: true}); err == nil {
		t.Error("a file is missing, and nobody says so")
	}
	if exists(note) {
		t.Error("Provision has run the program")
	}
	write(t, filepath.Join(dir, "README.md"), "changed\n")
	if err := m.Teardown(context.Background(), "s"); !errors.Is(err, ErrParked) {
		t.Errorf("Teardown = %v", err)
	}
	if exists(note) {
		t.Error("Teardown has run the program")
	}
}
