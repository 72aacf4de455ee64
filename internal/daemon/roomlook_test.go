package daemon

import (
	"errors"
	"strings"
	"testing"

	"rnix/internal/config"
	"rnix/kernel"
	"rnix/types"
)

// Agents wait from the moment at which less is free than should be, until there is a little more than that or the user wants
// less; not to and fro.
func TestRoomOnTheDisk(t *testing.T) {
	disk := config.Load(config.Sources{}).Disk
	now := disk
	size, free, fault := int64(100<<30), int64(50<<30), error(nil)
	r := newRoom("/data", disk)
	r.measure = func(string) (int64, int64, error) { return size, free, fault }
	step := func(what string, short, changed bool) {
		t.Helper()
		if s, c := r.look(func() config.Disk { return now }); s != short || c != changed {
			t.Errorf("%s: short %v, changed %v", what, s, c)
		}
		_, over := r.waits()
		if err := r.refusal("Spawn"); (over != nil) != short || (types.CodeOf(err) == types.ErrExhausted) != short || short && !strings.Contains(err.Error(), "/data has ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	step("enough", false, false)
	free = 1<<30 - 1
	step("less", true, true)
	_, over := r.waits()
	step("still", true, false)
	fault = errors.New("no answer")
	step("nobody knows", true, false)
	free, fault = 1<<30+1, nil
	step("hardly more", true, false)
	free = 1<<30 + 1<<28
	step("enough again", false, true)
	select {
	case <-over:
	default:
		t.Error("those that wait are not told")
	}
	size, free = 2<<30, 900<<20
	step("a small disk is half full", false, false)
	free = 90 << 20
	step("a small disk is nearly full", true, true)
	now.MinFree = config.Value[config.Bytes]{V: 0, Origin: "user"}
	step("the user wants none free", false, true)
	step("and still does", false, false)
	r.disk.MinFree = config.Value[config.Bytes]{V: 95 << 20, Origin: "user"}
	now = r.disk
	step("what the user says counts as it is", true, true)

	_, over = r.waits()
	r.readOnly = func(string) bool { return true }
	if short, changed := r.look(nil); !short || !changed || r.reason() != kernel.WaitsForWrite {
		t.Errorf("read-only: short %v, changed %v, waits for %q", short, changed, r.reason())
	}
	select {
	case <-over:
	default:
		t.Error("those that wait for room are not told that they wait for something else")
	}
	if err := r.refusal("Spawn"); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), "the file system of /data is read-only") {
		t.Errorf("read-only: %v", err)
	}
	if short, changed := r.look(nil); !short || changed {
		t.Errorf("still read-only: short %v, changed %v", short, changed)
	}
	r.readOnly, free = func(string) bool { return false }, 2<<30
	step("it can be written again", false, true)
}
