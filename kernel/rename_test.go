package kernel

import (
	"strings"
	"testing"

	"rnix/types"
)

func TestANewNameIsShownAtOnceAndAnEndedProcessKeepsIt(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	pid := s.spawn(func(o *SpawnOpts) { o.Name = "draft" })
	if was, err := s.Rename(pid, "night"); err != nil || was != "draft" {
		t.Errorf("%q %v", was, err)
	}
	if i, err := s.Info(pid); err != nil || i.Name != "night" {
		t.Errorf("%q %v", i.Name, err)
	}
	for _, bad := range []string{"7", "a/b", " a", "a ", "a\nb", "\x1b[31m", strings.Repeat("x", 65)} {
		if _, err := s.Rename(pid, bad); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if was, err := s.Rename(pid, "night"); err != nil || was != "night" {
		t.Errorf("the name that it has: %q %v", was, err)
	}
	p, _ := s.Process(pid)
	if err := s.Signal(pid, types.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WaitInfo(t.Context(), pid); err != nil {
		t.Fatal(err)
	}
	<-p.Gone()
	if _, err := s.Rename(pid, "late"); types.CodeOf(err) != types.ErrNotFound || !Passing(err) {
		t.Errorf("one that has ended: %v", err)
	}
	if i, err := s.Info(pid); err != nil || i.Name != "night" {
		t.Errorf("its tombstone says %q, %v", i.Name, err)
	}
	s.Renamed(pid, p.UUID, "late")
	if i, _ := s.Info(pid); i.Name != "late" {
		t.Errorf("its tombstone says %q", i.Name)
	}
	s.Renamed(pid, types.NewUUID(), "other")
	if i, _ := s.Info(pid); i.Name != "late" {
		t.Errorf("it has the name of another history: %q", i.Name)
	}
}
