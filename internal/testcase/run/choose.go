package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/internal/redact"
	"rnix/internal/testcase"
	"rnix/runtime/env"
	"rnix/types"
)

// choose leaves out what is not needed or must not be handed on.
func (m *importer) choose() {
	secrets := new(redact.Set)
	for _, s := range env.Secrets(m.o.Env) {
		secrets.Add(redact.Secret(s))
	}
	var hidden []string
	drop := func(path string) {
		m.part = true
		delete(m.before, path)
		delete(m.after, path)
	}
	for _, path := range sorted(both(m.before, m.after)) {
		secret := secretName(path)
		for _, b := range [][]byte{m.before[path], m.after[path]} {
			secret = secret || privateKey(b) || !secrets.Empty() && string(secrets.Bytes(b)) != string(b)
		}
		if secret {
			hidden = append(hidden, path)
			drop(path)
		}
	}
	if len(hidden) > 0 {
		m.note("left out, since it may hold secrets: %s", few(hidden))
	}
	bytes := 0
	for _, b := range m.before {
		bytes += len(b)
	}
	if m.o.All || len(m.before) <= fewFiles && bytes <= fewBytes {
		return
	}
	needed := m.needed()
	left := 0
	for path := range both(m.before, m.after) {
		if !needed(path) {
			drop(path)
			left++
		}
	}
	m.note("%d of %d files are left out, which no call names and the run has not changed; --all-files takes them", left, left+len(m.before))
}

func both(a, b map[string][]byte) map[string]bool {
	out := map[string]bool{}
	for p := range a {
		out[p] = true
	}
	for p := range b {
		out[p] = true
	}
	return out
}

// privateKey reports whether a file holds a private key.
func privateKey(b []byte) bool {
	s := string(b)
	i := strings.Index(s, "-----BEGIN ")
	return i >= 0 && strings.Contains(s[i:min(len(s), i+60)], "PRIVATE KEY")
}

func few(list []string) string {
	if len(list) > 10 {
		return strings.Join(list[:10], ", ") + fmt.Sprintf(" and %d more", len(list)-10)
	}
	return strings.Join(list, ", ")
}

// Cause is what an error says behind the operation and its object: of a mistake in a file, its place and what is wrong.
func Cause(err error) error {
	for e, ok := errors.AsType[*types.SyscallError](err); ok && e.Err != nil; e, ok = errors.AsType[*types.SyscallError](err) {
		err = e.Err
	}
	return err
}

// some reads the files below a directory that the calls name, and none to which a link leads out of it.
func (m *importer) some(dir string) (map[string][]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	out, total := map[string][]byte{}, 0
	for _, name := range sorted(m.named()) {
		i, err := root.Lstat(name)
		if err != nil || !i.Mode().IsRegular() || i.Size() > fewBytes || total+int(i.Size()) > maxBytes {
			continue
		}
		if b, err := plumbing.BeginningIn(root, name, fewBytes+1); err == nil && len(b) <= fewBytes {
			out[name] = b
			total += len(b)
		}
	}
	return out, nil
}

// named are the words of the calls that may be paths.
func (m *importer) named() map[string]bool {
	named := map[string]bool{}
	var look func(v any)
	look = func(v any) {
		switch v := v.(type) {
		case string:
			for word := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune(" \t\n;&|<>()'\"`=", r) }) {
				named[path.Clean(strings.TrimPrefix(strings.TrimPrefix(word, m.top.WorkDir+"/"), "./"))] = true
			}
		case []any:
			for _, x := range v {
				look(x)
			}
		case map[string]any:
			for _, x := range v {
				look(x)
			}
		}
	}
	for i := range m.x.Procs {
		for _, t := range m.x.Procs[i].Turns {
			for _, c := range t.Calls {
				var v any
				if json.Unmarshal([]byte(c.Input), &v) == nil {
					look(v)
				}
			}
		}
	}
	delete(named, ".")
	return named
}

// needed returns which files a run needs: what its calls name, what it has changed, and what says how agents work there.
func (m *importer) needed() func(path string) bool {
	named := m.named()
	changed := testcase.Statuses(m.before, m.after)
	if m.after == nil {
		clear(changed)
	}
	return func(p string) bool {
		if _, ok := changed[p]; ok || strings.HasPrefix(p, ".rnix/") || slices.Contains([]string{"AGENTS.md", "CLAUDE.md", "RNIX.md"}, path.Base(p)) {
			return true
		}
		for d := p; d != "."; d = path.Dir(d) {
			if named[d] {
				return true
			}
		}
		return false
	}
}
