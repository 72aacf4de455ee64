package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/plumbing"
	"rnix/types"
)

// stowCuts are the moments at which a daemon can be killed that puts a workspace away or back. Each leaves things as the kill does, and says
// whether the workspace is put away then.
var stowCuts = map[string]struct {
	cut  func(s stower, h *stowHome, n *stowed)
	away bool
}{
	"after the rescue, before the note": {cut: func(stower, *stowHome, *stowed) {}},
	"after the note":                    {cut: func(s stower, h *stowHome, n *stowed) { must(h, s.write(n)) }},
	"after it got another name": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		must(h, s.write(n))
		must(h, os.Rename(h.to, n.aside()))
	}},
	"after it was looked at once more": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		must(h, s.write(n))
		must(h, s.shut(n))
	}},
	"while it was removed": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		must(h, s.write(n))
		must(h, s.shut(n))
		must(h, n.unregister(h.Context()))
		must(h, os.Remove(filepath.Join(n.aside(), "a")))
	}},
	"before the note said that it is gone": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		must(h, s.write(n))
		must(h, s.shut(n))
		must(h, s.depart(h.Context(), n))
		n.State = stowGoing
		n.Device, n.Inode = 1, 1
		must(h, s.write(n))
	}},
	"after the directory to come was made": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		coming(s, h, n)
	}},
	"while its git directory was made": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		coming(s, h, n)
		must(h, s.k.desks.note(n.Desk))
		must(h, s.relink(h.Context(), n))
		must(h, os.Remove(filepath.Join(plumbing.Registration(n.Desk.Common, h.to), "HEAD")))
	}},
	"while its files were written": {away: true, cut: func(s stower, h *stowHome, n *stowed) {
		coming(s, h, n)
		rec, err := s.rescued(n.Files)
		must(h, err)
		must(h, s.fillIn(h.Context(), n, rec))
		must(h, os.Remove(filepath.Join(h.to, "a")))
	}},
	"while it was forgotten that it was away": {cut: func(s stower, h *stowHome, n *stowed) {
		coming(s, h, n)
		rec, err := s.rescued(n.Files)
		must(h, err)
		must(h, s.fillIn(h.Context(), n, rec))
		must(h, os.Rename(s.dir, s.back))
	}},
}

// coming brings a workspace to where it begins to come back.
func coming(s stower, h *stowHome, n *stowed) {
	h.Helper()
	must(h, s.write(n))
	must(h, s.shut(n))
	must(h, s.depart(h.Context(), n))
	must(h, os.Mkdir(h.to, 0o755))
	n.State = stowComing
	n.Device, n.Inode = placeOf(h.to)
	must(h, s.write(n))
}

// Whenever a daemon is killed, the next one finds the workspace there as it was, or away and whole; nothing of the way is left when it is back.
func TestAWorkspaceThatWasCutOffOnItsWayIsThereOrAway(t *testing.T) {
	t.Parallel()
	for name, c := range stowCuts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			stowStates["on a branch with commits"](h)
			h.write(h.to, map[string]string{"new": "n\n", "y.o": "small"})
			before := portrait(h.bench, h.to)
			d, err := h.desks.readDesk(h.to)
			must(t, err)
			must(t, withStower(t.Context(), h.Keeper, h.id, func(s stower) error {
				n, _, err := s.pack(t.Context(), d)
				must(t, err)
				c.cut(s, h, n)
				return nil
			}))
			h.Keeper = New(h.opts)
			if notes := SettleStowed(t.Context(), h.Keeper); len(notes) > 0 {
				t.Fatal(notes)
			}
			if _, away := StowedDirs(h.Keeper)[h.id]; away != c.away {
				t.Errorf("it is away: %v", away)
			}
			if _, err := os.Lstat(h.to); os.IsNotExist(err) != c.away {
				t.Errorf("it is there: %v", err)
			}
			if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
				t.Fatal(said, err)
			}
			same(t, "what is there", before, portrait(h.bench, h.to))
			h.nothingLeft()
			if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
				t.Error("and away again:", err)
			}
		})
	}
}

// A directory that somebody has put in the place of one that is away is nobody's to remove, whatever was cut off.
func TestWhatStandsInThePlaceOfAWorkspaceIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"after it got another name", "while it was removed", "after the directory to come was made"} {
		h := newStowHome(t)
		d, err := h.desks.readDesk(h.to)
		must(t, err)
		must(t, withStower(t.Context(), h.Keeper, h.id, func(s stower) error {
			n, _, err := s.pack(t.Context(), d)
			must(t, err)
			stowCuts[name].cut(s, h, n)
			return nil
		}))
		_ = os.Rename(h.to, h.to+"-was") // keeps its inode from being used again
		h.write(h.to, map[string]string{"mine": "m"})
		if notes := SettleStowed(t.Context(), New(h.opts)); len(notes) > 0 {
			t.Fatal(name, notes)
		}
		if text, err := os.ReadFile(filepath.Join(h.to, "mine")); err != nil || string(text) != "m" {
			t.Errorf("%s: %q %v", name, text, err)
		}
		if _, away := StowedDirs(h.Keeper)[h.id]; !away {
			t.Errorf("%s: what was away is forgotten", name)
		}
	}
}

// What is written to a workspace while it is put away is not lost, however late that is: by its name, or by one who was there before.
func TestWhatIsWrittenWhileAWorkspaceGoesIsNotLost(t *testing.T) {
	t.Parallel()
	late := map[string]func(h *stowHome) error{
		"when free is asked": func(h *stowHome) error {
			_, err := Stow(h.Context(), h.Keeper, h.to, func() error {
				h.write(h.to, map[string]string{"late": "l"})
				return nil
			})
			return err
		},
		"a change that keeps size and time": func(h *stowHome) error {
			_, err := Stow(h.Context(), h.Keeper, h.to, func() error {
				a := filepath.Join(h.to, "a")
				info, err := os.Stat(a)
				must(h, err)
				h.write(h.to, map[string]string{"a": "X\n", "late": "l"})
				must(h, os.Remove(filepath.Join(h.to, "late")))
				h.write(h.to, map[string]string{"late": "l"})
				return os.Chtimes(a, info.ModTime(), info.ModTime())
			})
			return err
		},
		"under its other name, before a crash": func(h *stowHome) error {
			d, err := h.desks.readDesk(h.to)
			must(h, err)
			must(h, withStower(h.Context(), h.Keeper, h.id, func(s stower) error {
				n, _, err := s.pack(h.Context(), d)
				must(h, err)
				must(h, s.write(n))
				must(h, os.Rename(h.to, n.aside()))
				h.write(n.aside(), map[string]string{"late": "l"})
				return nil
			}))
			h.Keeper = New(h.opts)
			if notes := SettleStowed(h.Context(), h.Keeper); len(notes) > 0 {
				h.Error(notes)
			}
			return conflict(h.to, "files were changed")
		},
	}
	for name, write := range late {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newStowHome(t)
			if err := write(h); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "files were changed") {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(h.to, "late")); err != nil || string(text) != "l" {
				t.Errorf("%q %v", text, err)
			}
			h.nothingLeft()
			if _, err := Stow(t.Context(), h.Keeper, h.to, isFree); err != nil {
				t.Error("when it is quiet:", err)
			}
		})
	}
}

// One whose place was taken while it was shut is not lost either: it is said where it is.
func TestAWorkspaceWhosePlaceWasTakenIsSaidWhereItIs(t *testing.T) {
	t.Parallel()
	h := newStowHome(t)
	d, err := h.desks.readDesk(h.to)
	must(t, err)
	var aside string
	must(t, withStower(t.Context(), h.Keeper, h.id, func(s stower) error {
		n, _, err := s.pack(t.Context(), d)
		must(t, err)
		must(t, s.write(n))
		aside = n.aside()
		must(t, os.Rename(h.to, aside))
		h.write(aside, map[string]string{"late": "l"})
		h.write(h.to, map[string]string{"mine": "m"})
		return nil
	}))
	notes := SettleStowed(t.Context(), New(h.opts))
	if len(notes) != 1 || !strings.Contains(notes[0], aside) {
		t.Error(notes)
	}
	must(t, os.Rename(h.to, h.to+"-mine"))
	if notes := SettleStowed(t.Context(), New(h.opts)); len(notes) > 0 {
		t.Error(notes)
	}
	if text, err := os.ReadFile(filepath.Join(h.to, "late")); err != nil || string(text) != "l" {
		t.Errorf("%q %v", text, err)
	}
	h.nothingLeft()
}

// What was kept of a workspace is not forgotten unless it stands in its place again: not when it has vanished, and not for a disk that is full.
func TestWhatWasKeptStaysUntilTheWorkspaceIsBack(t *testing.T) {
	t.Parallel()
	h := newStowHome(t)
	h.write(h.to, map[string]string{"new": "n"})
	before := portrait(h.bench, h.to)
	d, err := h.desks.readDesk(h.to)
	must(t, err)
	must(t, withStower(t.Context(), h.Keeper, h.id, func(s stower) error {
		n, _, err := s.pack(t.Context(), d)
		must(t, err)
		must(t, s.write(n))
		must(t, os.RemoveAll(h.to))
		if err := s.open(t.Context(), n); err == nil {
			t.Error("one that has vanished was opened")
		}
		broken := s
		broken.note = filepath.Join(s.note, "no", "room") // where nothing can be written
		if err := broken.shut(n); err == nil || types.CodeOf(err) == types.ErrConflict {
			t.Errorf("a note that cannot be written: %v", err)
		}
		return nil
	}))
	h.Keeper = New(h.opts)
	if notes := SettleStowed(t.Context(), h.Keeper); len(notes) > 0 {
		t.Error(notes)
	}
	if said, err := Unstow(t.Context(), h.Keeper, h.id); err != nil || said != "" {
		t.Fatal(said, err)
	}
	same(t, "what is there", before, portrait(h.bench, h.to))
	h.nothingLeft()
}
