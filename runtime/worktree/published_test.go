package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// farAway is the URL of a repository as if it were on another machine.
func farAway(bare string) string { return "ssh://far" + bare }

// committed commits a new file in a checkout and returns the commit.
func committed(t *testing.T, path, file string) string {
	t.Helper()
	write(t, filepath.Join(path, file), file)
	git(t, path, "add", file)
	git(t, path, "commit", "-qm", file)
	return git(t, path, "rev-parse", "HEAD")
}

// second makes another repository to push to.
func second(t *testing.T, bare string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(bare), "second.git")
	git(t, "/", "init", "-q", "--bare", dir)
	return dir
}

func TestACloneGoesOnlyIfItsCommitsAndTagsAreProvenElsewhere(t *testing.T) {
	const goes, commits, tags = "", "commits in it", "tags are in it"
	type plant func(t *testing.T, path, bare string, url func(bare string) string)
	for name, tt := range map[string]struct {
		plant     plant
		near, far string // why it stays
	}{
		"as it was made": {func(t *testing.T, path, bare string, url func(string) string) {}, goes, goes},
		"pushed":         {func(t *testing.T, path, bare string, url func(string) string) { pushed(t, path) }, goes, goes},
		"pushed, and published by others since": {func(t *testing.T, path, bare string, url func(string) string) {
			pushed(t, path)
			git(t, bare, "update-ref", "refs/heads/main", git(t, path, "rev-parse", "HEAD"))
			git(t, bare, "update-ref", "-d", "refs/heads/agent/s")
			commitAt(t, bare, "main", "other.txt")
		}, goes, goes},
		"fetched": {func(t *testing.T, path, bare string, url func(string) string) {
			commitAt(t, bare, "main", "other.txt")
			git(t, path, "fetch", "-q", "origin")
			git(t, path, "merge", "-q", "origin/main")
		}, goes, goes},
		"pulled": {func(t *testing.T, path, bare string, url func(string) string) {
			commitAt(t, bare, "main", "other.txt")
			git(t, path, "pull", "-q", "origin", "main")
		}, goes, goes},
		"pushed to the place and no remote": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "remote", "add", "another", url(second(t, bare)))
			git(t, path, "push", "-q", bare, "HEAD:refs/heads/x")
		}, goes, commits},
		"pushed, and pushed over": {func(t *testing.T, path, bare string, url func(string) string) {
			pushed(t, path)
			git(t, path, "commit", "-q", "--amend", "-m", "again")
			git(t, path, "push", "-q", "-f", "origin", "HEAD")
		}, commits, commits},
		"pushed, and the remote has lost it": {func(t *testing.T, path, bare string, url func(string) string) {
			pushed(t, path)
			git(t, bare, "update-ref", "-d", "refs/heads/agent/s")
		}, commits, goes},
		"not pushed": {func(t *testing.T, path, bare string, url func(string) string) { committed(t, path, "x") }, commits, commits},
		"not pushed, on a branch that is not checked out": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "checkout", "-q", "--orphan", "empty")
			git(t, path, "rm", "-rfq", ".")
		}, commits, commits},
		"forged": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "update-ref", "refs/remotes/origin/main", "HEAD")
		}, commits, commits},
		"forged, held by nothing else": {func(t *testing.T, path, bare string, url func(string) string) {
			c := git(t, path, "commit-tree", "-p", "HEAD", "-m", "x", "HEAD^{tree}")
			git(t, path, "update-ref", "refs/remotes/origin/x", c)
		}, commits, commits},
		"forged with a fetch from itself": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "fetch", "-q", ".", "HEAD:refs/remotes/origin/x")
		}, commits, commits},
		"replaced": {func(t *testing.T, path, bare string, url func(string) string) {
			c := committed(t, path, "x")
			git(t, path, "replace", c, "origin/main")
		}, commits, commits},
		"grafted": {func(t *testing.T, path, bare string, url func(string) string) {
			write(t, filepath.Join(path, ".git", "info", "grafts"), git(t, path, "rev-parse", "HEAD")+"\n")
		}, "grafts", "grafts"},
		"in another remote": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "remote", "add", "other", url(second(t, bare)))
			git(t, path, "push", "-q", "other", "HEAD")
		}, goes, goes},
		"in a remote that is gone": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "remote", "add", "other", url(second(t, bare)))
			git(t, path, "push", "-q", "other", "HEAD")
			git(t, path, "config", "--remove-section", "remote.other")
		}, commits, commits},
		"in a remote that is not there": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			other := second(t, bare)
			git(t, path, "remote", "add", "other", other)
			git(t, path, "push", "-q", "other", "HEAD")
			if err := os.RemoveAll(other); err != nil {
				t.Fatal(err)
			}
		}, commits, commits},
		"in a remote in itself": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "init", "-q", "--bare", ".git/own.git")
			git(t, path, "remote", "add", "own", "./.git/own.git")
			git(t, path, "push", "-q", "own", "HEAD")
		}, commits, commits},
		"in a remote that borrows its objects": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			other := filepath.Join(filepath.Dir(bare), "borrows.git")
			git(t, path, "clone", "-q", "--bare", "--shared", ".", other)
			git(t, path, "remote", "add", "other", other)
			git(t, path, "fetch", "-q", "other")
		}, commits, commits},
		"in a remote that means another": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "init", "-q", "--bare", ".git/own.git")
			git(t, path, "config", "url."+path+"/.git/own.git.insteadOf", url(bare))
			git(t, path, "push", "-q", "origin", "HEAD")
		}, commits, commits},
		"in a remote that is pushed elsewhere": {func(t *testing.T, path, bare string, url func(string) string) {
			committed(t, path, "x")
			git(t, path, "init", "-q", "--bare", ".git/own.git")
			git(t, path, "config", "remote.origin.pushurl", path+"/.git/own.git")
			git(t, path, "push", "-q", "origin", "HEAD")
		}, commits, commits},
		"a tag": {func(t *testing.T, path, bare string, url func(string) string) { git(t, path, "tag", "mine") }, tags, tags},
		"a tag of its own": {func(t *testing.T, path, bare string, url func(string) string) {
			git(t, path, "tag", "-a", "-m", "m", "mine")
		}, tags, tags},
		"a tag of its name": {func(t *testing.T, path, bare string, url func(string) string) {
			git(t, path, "tag", "-f", "-a", "-m", "m", "v1")
		}, tags, tags},
		"a tag that is pushed": {func(t *testing.T, path, bare string, url func(string) string) {
			git(t, path, "tag", "-a", "-m", "m", "mine")
			git(t, path, "push", "-q", "origin", "mine")
		}, goes, tags},
		"a file under a reference": {func(t *testing.T, path, bare string, url func(string) string) {
			write(t, filepath.Join(path, "f"), "precious")
			git(t, path, "update-ref", "refs/mine/f", git(t, path, "hash-object", "-w", "f"))
			os.Remove(filepath.Join(path, "f"))
		}, "to what is no commit", "to what is no commit"},
	} {
		for kind, url := range map[string]func(string) string{"near": func(bare string) string { return bare }, "far": farAway} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				bare, _ := origin(t)
				git(t, bare, "tag", "-a", "-m", "v1", "v1", "main")
				git(t, bare, "tag", "light", "main")
				m := manager(t, Options{})
				path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: url(bare), Branch: "agent/s", BaseRef: "main"})
				if err != nil {
					t.Fatal(err)
				}
				tt.plant(t, path, bare, url)
				want := tt.near
				if kind == "far" {
					want = tt.far
				}
				err = m.Teardown(t.Context(), "s")
				if want == "" {
					if err != nil || exists(path) {
						t.Errorf("it stays: %v", err)
					}
					return
				}
				mustPark(t, err, want)
			})
		}
	}
}

func TestACloneOfWhichNothingWasNotedIsKept(t *testing.T) {
	t.Parallel()
	for kind, url := range map[string]func(string) string{"near": func(bare string) string { return bare }, "file": func(bare string) string { return "file://" + bare }, "far": farAway} {
		bare, _ := origin(t)
		m := manager(t, Options{})
		path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: url(bare)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.ledger.read("s")
		if err == nil {
			r.URL, r.Tips = "", nil // as earlier versions have written it
			err = m.ledger.write(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		err = m.Teardown(t.Context(), "s")
		if kind == "far" {
			mustPark(t, err, "commits in it")
		} else if err != nil || exists(path) { // its remote can be asked
			t.Errorf("it stays: %v", err)
		}
	}
}

func TestTheLogOfABranchIsOnlyBelievedOfItsRemote(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	e := &evidence{look: &look{at: Place{GitDir: top}}}
	const old, now = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"
	r := ref{object: now, kind: "commit", name: "refs/remotes/origin/main"}
	for said, want := range map[string]bool{
		"update by push": true, "fetch origin: fast-forward": true, "fetch: fast-forward": true, "fetch --all -p: forced-update": true, "pull --rebase origin main: fast-forward": true,
		"fetch . HEAD:refs/remotes/origin/main: fast-forward": false, "fetch other: storing head": false, "": false, "fetch origin": false, "update by push x": false,
		"branch: Created from HEAD": false, "remote: renamed refs/remotes/a/main to refs/remotes/origin/main": false, "clone: from ssh://far/x": false,
	} {
		line := old + " " + now + " t <t@localhost> 1700000000 +0000\t" + said + "\n"
		write(t, filepath.Join(top, "logs", r.name), strings.Repeat(line, 100))
		if got := e.arrived(r, "origin"); got != want {
			t.Errorf("%q: %v", said, got)
		}
		write(t, filepath.Join(top, "logs", r.name), line+now+" "+old+" t <t@localhost> 1700000000 +0000\tupdate by push\n")
		if e.arrived(r, "origin") {
			t.Errorf("%q: it has moved since", said)
		}
	}
	for u, want := range map[string]string{"/a/b": "/a/b", "file:///a/b": "/a/b", "../b": "../b", "./a:b": "./a:b", "ssh://h/a": "", "h:a": "", "https://h/a": "", "": ""} {
		if got, _ := localDir(u); got != want {
			t.Errorf("localDir(%q) = %q", u, got)
		}
	}
}
