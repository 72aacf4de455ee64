//go:build amd64 || arm64

package sandbox

import (
	"testing"

	"rnix/types"
)

// A link that leads to one which the command can replace gives it nothing: it could make it lead anywhere.
func TestLinksThatTheCommandCanReplaceGiveNothing(t *testing.T) {
	files := tree("/home/u/work/x", "/home/u/notes/x", "/home/u/.local/", "/home/u/.local/bin -> ../work/bin", "/home/u/work/bin -> /home/u/notes", "/home/u/go -> /srv/go", "/srv/go/")
	p := Standard(Place{Work: "/home/u/work", Home: "/home/u"})
	p.Hide = append(p.Hide, "/srv")
	got, err := p.Resolve(files)
	if err != nil {
		t.Fatal(err)
	}
	if got.Allows("/home/u/notes/x", AccessRead) || !got.Allows("/srv/go/x", AccessRead) || !got.Allows("/home/u/work/x", AccessWrite) {
		t.Error(got.Explain())
	}
	also := p
	also.Read = append([]string{"/home/u/notes"}, p.Read...)
	if got, err := also.Resolve(files); err != nil || !got.Allows("/home/u/notes/x", AccessRead) {
		t.Errorf("what is named itself is not given: %v", err)
	}
	p.Write = append([]string{"/home/u/.local/bin"}, p.Write...)
	if _, err := p.Resolve(files); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("it is led to where it may write: %v", err)
	}
}
