package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// shadowVersion is the format of a private git directory; one of another is made anew.
const shadowVersion = "2"

// plainBytes makes git take every file as it is. info/attributes goes before all other attributes.
const plainBytes = "* -text !eol !crlf -ident !filter !working-tree-encoding\n"

// trees writes work trees as trees of git's, into the store of their repository.
type trees struct {
	*stores
	data string // the data directory, which is not work
	most int64  // bytes that may be new in one snapshot
}

// shadow is a git directory of our own over the user's work tree and our store: an index that
// belongs to one history, and a configuration without anything of the user's but what is ignored. Every file that the index has is in the store.
type shadow struct {
	dir   string
	repo  *repo
	store *store

	tree       string    // of the index; "" = not known
	submodules []string  // recorded by their commit only
	partial    bool      // objects may be missing that a server has
	userIndex  string    // what the user's index was like when ignored files were last compared
	stamp      time.Time // no file that the index has was changed after it and is taken for unchanged
	settled    bool      // no file is read again only because it was changed in the second of stamp
}

// args returns the arguments of a git that works on the shadow.
func (s *shadow) args(args ...string) []string {
	return append([]string{"--git-dir=" + s.dir, "--work-tree=" + s.repo.root}, args...)
}

func (s *shadow) index() string { return filepath.Join(s.dir, "index") }

// shadow returns the private git directory of a history in a repository. The caller has the turn.
func (k *trees) shadow(ctx context.Context, h *history, id types.UUID, r *repo) (*shadow, error) {
	if s := h.shadows[r.root]; s != nil && *s.repo == *r {
		if _, err := os.Stat(s.index()); err == nil {
			return s, nil
		}
	}
	sum := sha256.Sum256([]byte(r.root + "\x00" + r.gitDir + "\x00" + r.common + "\x00" + r.format))
	s := &shadow{dir: filepath.Join(k.base, "git", id.String(), hex.EncodeToString(sum[:8])), repo: r}
	var err error
	if s.store, err = k.storeOf(ctx, id, r.common, r.format); err != nil {
		return nil, err
	}
	conf, err := k.config(ctx, id, r.gitDir, true)
	if err != nil {
		return nil, err
	}
	exclude := k.excludes(ctx, id, r, conf)
	ready := filepath.Join(s.dir, "ready")
	if b, err := os.ReadFile(ready); err != nil || string(b) != shadowVersion {
		if err := os.RemoveAll(s.dir); err != nil {
			return nil, storage(s.dir, err)
		}
		if err := s.furnish(exclude); err != nil {
			return nil, err
		}
		if err := k.seed(ctx, id, s, conf); err != nil {
			return nil, err
		}
		if err := durable.WriteFile(durable.OS, ready, []byte(shadowVersion), durable.Cached); err != nil {
			return nil, err
		}
	} else {
		if err := os.Remove(s.index() + ".lock"); err != nil && !os.IsNotExist(err) { // of a git that was killed
			return nil, storage(s.dir, err)
		}
		if err := s.furnish(exclude); err != nil {
			return nil, err
		}
	}
	out, err := k.run(ctx, id, call{args: s.args("ls-files", "-s", "-z")})
	if err != nil {
		return nil, err
	}
	for _, e := range plumbing.Records(out) {
		if meta, path, _ := strings.Cut(e, "\t"); strings.HasPrefix(meta, plumbing.Gitlink+" ") {
			s.submodules = append(s.submodules, path)
		}
	}
	if err := k.fill(ctx, id, s.store, blobsOf(plumbing.Records(out))); err != nil {
		if types.CodeOf(err) == types.ErrDriver { // an index that names what was lost: the next one is made of the user's
			return nil, errors.Join(err, os.RemoveAll(s.dir))
		}
		return nil, err
	}
	s.partial = partial(r.common)
	h.shadows[r.root] = s
	return s, nil
}

// furnish writes everything of a shadow but the index. exclude is the user's own file of what is
// ignored everywhere.
func (s *shadow) furnish(exclude string) error {
	version, extensions := 0, ""
	if s.repo.format != "sha1" {
		version, extensions = 1, "[extensions]\n\tobjectFormat = "+s.repo.format+"\n"
	}
	config := fmt.Sprintf("[core]\n\trepositoryFormatVersion = %d\n\tbare = false\n\tfileMode = true\n\tsymlinks = true\n"+
		"\tautocrlf = false\n\tsafecrlf = false\n\tprotectNTFS = false\n\tprotectHFS = false\n\tattributesFile = /dev/null\n\texcludesFile = %s\n%s",
		version, quoteConfig(exclude), extensions)
	for _, dir := range []string{"refs", "info"} {
		if err := mkdir(filepath.Join(s.dir, dir)); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/none\n", "config": config, "info/attributes": plainBytes} {
		path := filepath.Join(s.dir, name)
		if b, err := os.ReadFile(path); err == nil && string(b) == text {
			continue
		}
		if err := durable.WriteFile(durable.OS, path, []byte(text), durable.Cached); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"objects": s.store.objects(), "info/exclude": filepath.Join(s.repo.common, "info", "exclude")} {
		path := filepath.Join(s.dir, name)
		if now, err := os.Readlink(path); err == nil && now == target {
			continue
		}
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return storage(path, err)
		}
		if err := os.Symlink(target, path); err != nil {
			return storage(path, err)
		}
	}
	return nil
}

// quoteConfig writes a value for git's configuration format.
func quoteConfig(v string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(v) + `"`
}

// excludes returns the file in which the user says what is ignored in every repository.
func (k *trees) excludes(ctx context.Context, id types.UUID, r *repo, conf plumbing.Config) string {
	path, _ := conf.Get("core.excludesfile")
	rest, home := strings.CutPrefix(path, "~/")
	switch {
	case path == "": // see below
	case home && k.home != "":
		return k.home + "/" + rest
	case !strings.ContainsAny(path[:1], "~%:"): // else it begins with what git fills in
		return path
	default:
		out, err := k.run(ctx, id, call{user: true, args: []string{"--git-dir=" + r.gitDir, "config", "-z", "--type=path", "--get", "core.excludesFile"}})
		if err == nil && len(out) > 1 {
			return strings.TrimSuffix(string(out), "\x00")
		}
	}
	for _, kv := range k.source {
		if v, ok := strings.CutPrefix(kv, "XDG_CONFIG_HOME="); ok && v != "" {
			return filepath.Join(v, "git", "ignore")
		}
	}
	if k.home == "" {
		return os.DevNull
	}
	return filepath.Join(k.home, ".config", "git", "ignore")
}

// settle writes the index again once the second in which it was written is over, so that the files
// changed in that second are not read at each look from then on.
func (k *trees) settle(ctx context.Context, id types.UUID, s *shadow) error {
	began := time.Now()
	if s.settled || began.Sub(s.stamp) < 2*time.Second {
		return nil
	}
	if _, err := k.run(ctx, id, call{args: s.args("update-index", "-q", "--refresh", "--force-write-index")}); err != nil {
		if types.CodeOf(err) != types.ErrDriver {
			return err
		}
		return nil // a file has changed since: the next look finds it
	}
	s.settled = true
	return s.mark(began)
}

// mark gives the index a time: files changed from then on are compared by content, whatever else their
// description says.
func (s *shadow) mark(began time.Time) error {
	s.stamp = began
	if err := os.Chtimes(s.index(), began, began); err != nil && !os.IsNotExist(err) {
		return storage(s.index(), err)
	}
	return nil
}

// storage is a failure of the disk at a path.
func storage(path string, err error) error {
	return types.Errorf(types.ErrStorage, "Snapshot", path, "%w", err)
}
