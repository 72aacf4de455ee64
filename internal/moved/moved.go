// Package moved finds what a data directory holds after it got another path. Records name the directories in which
// forks and git work trees are by their absolute paths, and a record is never rewritten: whoever reads such a path asks
// Here where it is now.
package moved

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"rnix/types"
)

// kinds are the directories of a data directory in which each history may have one that processes work in, named by its UUID.
var kinds = []string{"workspaces", "worktrees"}

// Here returns where a recorded path is: the same path, unless it was below another data directory whose directory for
// the same history is in this one now. A UUID is never given twice, so that is the same directory or a copy of it, and
// what has the old name now does not matter.
func Here(dataDir, path string) string {
	if dataDir == "" || !filepath.IsAbs(path) || path == dataDir || strings.HasPrefix(path, dataDir+"/") {
		return path
	}
	parts := strings.Split(path, "/")
	for i := 1; i < len(parts); i++ {
		if parts[i-1] != kinds[0] && parts[i-1] != kinds[1] || !isUUID(parts[i]) {
			continue
		}
		top := filepath.Join(dataDir, parts[i-1], parts[i])
		if info, err := os.Stat(top); err == nil && info.IsDir() && !same(info, strings.Join(parts[:i+1], "/")) {
			return filepath.Join(top, filepath.Join(parts[i+1:]...))
		}
	}
	return path
}

// same reports whether a path leads to the same directory, as one through a symbolic link does.
func same(info os.FileInfo, path string) bool {
	other, err := os.Stat(path)
	return err == nil && os.SameFile(info, other)
}

func isUUID(s string) bool {
	var id types.UUID
	return len(s) == 36 && id.UnmarshalText([]byte(s)) == nil
}

// All returns paths with Here for each.
func All(dataDir string, paths []string) []string {
	for i, p := range paths {
		if now := Here(dataDir, p); now != p {
			out := append([]string(nil), paths...)
			for j := i; j < len(out); j++ {
				out[j] = Here(dataDir, out[j])
			}
			return out
		}
	}
	return paths
}

// JSON returns a JSON value with Here for each text in it that is a path. One that names no such path stays as it is.
func JSON(dataDir string, raw json.RawMessage) json.RawMessage {
	if !bytes.Contains(raw, []byte("/"+kinds[0]+"/")) && !bytes.Contains(raw, []byte("/"+kinds[1]+"/")) {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	changed := false
	v = each(v, func(s string) string {
		now := Here(dataDir, s)
		changed = changed || now != s
		return now
	})
	if !changed {
		return raw
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return raw
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func each(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = each(v[i], f)
		}
	case map[string]any:
		for k := range v {
			v[k] = each(v[k], f)
		}
	}
	return v
}
