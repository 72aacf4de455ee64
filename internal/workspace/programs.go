package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// noPrograms begins what programs returns, so that "there are none" is not "it is not known".
const noPrograms = "-"

// HookNamed begins the name of a hook among those that News returns; all others are keys of settings.
const HookNamed = "the hook "

// maxHook is how many bytes of a hook are looked at, besides its size.
const maxHook = 1 << 20

// programs names the settings and hooks of a repository by which git runs programs for whoever works in it, each on a line with a mark
// of what it says. What the user's own configuration says is not among them.
func (k *git) programs(ctx context.Context, id types.UUID, common string) (string, error) {
	conf, err := k.config(ctx, id, common, false)
	if err != nil {
		return "", err
	}
	lines := []string{noPrograms}
	add := func(name string, content []byte) {
		sum := sha256.Sum256(content)
		lines = append(lines, hex.EncodeToString(sum[:8])+" "+name)
	}
	for _, e := range conf.Local() {
		if e.RunsProgram() {
			add(e.Key, []byte(e.Text))
		}
	}
	hooks, err := os.ReadDir(filepath.Join(common, "hooks"))
	if err != nil && !os.IsNotExist(err) {
		return "", storage(common, err)
	}
	for _, h := range hooks {
		path := filepath.Join(common, "hooks", h.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 || strings.HasSuffix(h.Name(), ".sample") {
			continue
		}
		content, err := plumbing.Beginning(path, maxHook)
		if err != nil {
			return "", storage(path, err)
		}
		add(HookNamed+h.Name(), fmt.Appendf(content, "\x00%d", info.Size()))
	}
	slices.Sort(lines[1:])
	return strings.Join(slices.Compact(lines), "\n"), nil
}

// News returns, for people, which settings and hooks by which git runs programs are new in the repository since its work tree was made, or
// are others. None = there are none, or it is not known what there was.
func (k *Grove) News(ctx context.Context, id types.UUID, t Tree) ([]string, error) {
	if t.Programs == "" {
		return nil, nil
	}
	now, err := k.git.programs(ctx, id, t.Common)
	if err != nil {
		return nil, err
	}
	_, news := compared(t.Programs, now)
	return news, nil
}

// compared returns the names of what programs returned as it was before, and of what is new since or is another.
func compared(before, now string) (kept, news []string) {
	lines := strings.Split(before, "\n")
	for _, l := range strings.Split(now, "\n") {
		_, name, ok := strings.Cut(l, " ")
		switch {
		case !ok:
		case slices.Contains(lines, l):
			kept = append(kept, name)
		default:
			news = append(news, name)
		}
	}
	slices.Sort(kept)
	slices.Sort(news)
	return slices.Compact(kept), slices.Compact(news)
}
