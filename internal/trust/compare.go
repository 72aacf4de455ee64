package trust

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"rnix/internal/workspace"
)

// Change is a difference between the files of a project when it was trusted and now.
type Change struct {
	Path string `json:"path"`
	Kind string `json:"kind"`           // added, removed, changed
	Diff string `json:"diff,omitempty"` // a unified diff, for texts that are not too large
}

// The kinds of changes.
const (
	Added   = "added"
	Removed = "removed"
	Edited  = "changed"
)

// Compare returns what is different between two lists of files, by their paths.
func Compare(was, now []File) (out []Change) {
	before := map[string]*File{}
	for i := range was {
		before[was[i].Path] = &was[i]
	}
	for i := range now {
		f := &now[i]
		old, known := before[f.Path]
		delete(before, f.Path)
		switch {
		case !known:
			out = append(out, Change{f.Path, Added, difference(&File{Kind: f.Kind, Text: []byte{}}, f)})
		case old.Sum != f.Sum || old.Kind != f.Kind:
			out = append(out, Change{f.Path, Edited, difference(old, f)})
		}
	}
	for _, f := range before {
		out = append(out, Change{f.Path, Removed, difference(f, &File{Kind: f.Kind, Text: []byte{}})})
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// difference is the unified diff of two texts, after what they are if that has changed; without one that is not kept or is no text.
func difference(was, now *File) (diff string) {
	if was.Kind != now.Kind && now.Kind+was.Kind != "" {
		diff = fmt.Sprintf("(%s, before: %s)\n", cmp.Or(now.Kind, "a plain file"), cmp.Or(was.Kind, "a plain file"))
	}
	before, beforeKept := was.kept()
	after, afterKept := now.kept()
	if !beforeKept || !afterKept || bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return diff
	}
	return diff + workspace.Unified(before, after)
}

// noText is the sum of an empty file.
var noText = sha256.Sum256(nil)

// kept returns the contents of a file; false if they are too large to be kept.
func (f *File) kept() ([]byte, bool) {
	return f.Text, f.Text != nil || f.Sum == "" || f.Sum == hex.EncodeToString(noText[:])
}

// printable is a path for a line of text: quoted if a character of it could end the line or is no text.
func printable(path string) string {
	if q := strconv.Quote(path); q != `"`+path+`"` {
		return q
	}
	return path
}

// Names names changes in a few words, at most three of them.
func Names(cs []Change) string {
	var b strings.Builder
	for i, c := range cs {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(cs)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(printable(c.Path))
		if c.Kind != Edited {
			b.WriteString(" (" + c.Kind + ")")
		}
	}
	return b.String()
}
