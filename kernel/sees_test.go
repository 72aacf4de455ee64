package kernel

import (
	"testing"

	"rnix/types"
	"rnix/vfs"
)

// What an agent was told and said is for itself and for those above it, also when those between them are gone.
func TestAgentSeesWhatItsDescendantsSayAndNobodyElse(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	below := func(pid types.PID) func(*SpawnOpts) { return func(o *SpawnOpts) { o.ParentPID = pid } }
	top := s.spawn()
	kid := s.spawn(below(top))
	grandkid := s.spawn(below(kid))
	other := s.spawn()
	proc := vfs.NewProcFS(s.Proc(), s.VFS())
	reads := func(reader, pid types.PID) bool {
		t.Helper()
		f, err := proc.Open("/"+pid.String()+"/context", vfs.OpenRead)
		if err == nil {
			err = f.(vfs.CallerBinder).BindCaller(vfs.Caller{PID: reader})
		}
		if code := types.CodeOf(err); err != nil && code != types.ErrPermission {
			t.Fatalf("%d opens that of %d: %v", reader, pid, err)
		}
		return err == nil
	}
	for _, c := range []struct {
		reader, pid types.PID
		want        bool
	}{
		{top, top, true}, {top, kid, true}, {top, grandkid, true}, {top, other, false}, {kid, top, false}, {kid, grandkid, true},
		{grandkid, kid, false}, {other, top, false}, {other, other, true}, {0, top, true}, {0, grandkid, true},
	} {
		if got := reads(c.reader, c.pid); got != c.want {
			t.Errorf("%d reads %d: %v", c.reader, c.pid, got)
		}
	}
	if s.Proc().Sees(99, top) || s.Proc().Sees(top, 99) {
		t.Error("who does not live sees, or is seen")
	}
}
