package confine

import (
	"os"
	"strings"
	"testing"

	"rnix/internal/event"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

func TestLimitThatIsAskedForAndNotEnforcedIsRefusedOrSaid(t *testing.T) {
	w := newWorld(t)
	w.can(sandbox.RungBwrap)
	set := func(memory types.Memory, processes types.Tasks, more sandbox.Settings) sandbox.Settings {
		more.Bounds = types.Bounds{Memory: memory, Processes: processes}
		return sandbox.Usual().With(more)
	}
	root := os.Geteuid() == 0
	for name, c := range map[string]struct {
		by   proc.Enforced
		set  sandbox.Settings
		want string // why it is not enforced
	}{
		"nothing is asked for":           {proc.Enforced{Why: "no"}, set(0, 0, sandbox.Settings{}), ""},
		"no limit is asked for":          {proc.Enforced{Why: "no"}, set(-1, -1, sandbox.Settings{}), ""},
		"memory, enforced":               {proc.Enforced{Memory: true, Why: "no"}, set(1<<30, 0, sandbox.Settings{}), ""},
		"memory, not enforced":           {proc.Enforced{Processes: true, Why: "no"}, set(1<<30, 64, sandbox.Settings{}), "sandbox.memory is 1GiB, and nothing enforces it here: no"},
		"processes, off":                 {proc.Enforced{Why: "no"}, set(0, 64, sandbox.Settings{Level: sandbox.LevelOff}), "sandbox.processes is 64, and nothing enforces it here: no"},
		"memory, off, enforced":          {proc.Enforced{Memory: true}, set(1<<30, 0, sandbox.Settings{Level: sandbox.LevelOff}), ""},
		"processes, each command's":      {proc.Enforced{Why: "no"}, set(0, 64, sandbox.Settings{}), map[bool]string{true: "sandbox.processes is 64, and nothing enforces it here: no"}[root]},
		"processes, each command's, set": {proc.Enforced{Processes: true}, set(0, 64, sandbox.Settings{}), ""},
	} {
		w.Enforced = func() proc.Enforced { return c.by }
		_, _, err := w.Fits(c.set)
		if (err != nil) != (c.want != "") || err != nil && (types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		c.set.Optional = true
		if _, unheld, err := w.Fits(c.set); err != nil || strings.Join(unheld, "|") != c.want {
			t.Errorf("%s, which may be so: %q %v", name, unheld, err)
		}
	}
}

func TestBoundsOfAProcessAreThoseItWasStartedWith(t *testing.T) {
	w := newWorld(t)
	w.Enforced = func() proc.Enforced { return proc.Enforced{Processes: true, Why: "no memory here"} }
	w.profile.Sandbox.Bounds = types.Bounds{Memory: 1 << 30}
	if got := BoundsOf(w.Service)(1); got != (types.Bounds{Memory: 1 << 30}) {
		t.Errorf("%+v", got)
	}
	if got := BoundsOf(w.Service)(99); !got.IsZero() || got.Held().Processes != types.UsualTasks {
		t.Errorf("of one that is not known: %+v", got)
	}
	got := boundsOf(w.Service, 1, sandbox.RungBwrap)
	if len(got) != 2 || got[0].Value != 1<<30 || got[0].By != "" || got[0].Why != "no memory here" || !got[0].Asked || got[1].Value != 2048 || got[1].By != byCgroup || got[1].Asked {
		t.Errorf("%+v", got)
	}
	if below := w.Below(1); below.Bounds != (types.Bounds{Memory: 1 << 30}) {
		t.Errorf("below: %+v", below.Bounds)
	}
}

func TestWhatALimitHasHeldIsAnEvent(t *testing.T) {
	log := event.New(16)
	t.Cleanup(log.Close)
	r := Refusals{Events: log}
	id := types.NewUUID()
	r.Held(proc.Spec{Owner: 3, OwnerUUID: id}, proc.Hits{Killed: 2, Refused: 5, Bounds: types.Bounds{Memory: 1 << 30, Processes: 64}})
	got := make([]event.Event, 3)
	if n, err := log.Cursor(1).TryRead(got); n != 2 || err != nil || got[0].Name != event.BoundMemory || got[1].Name != event.BoundProcesses || got[0].PID != 3 || got[1].UUID != id || got[0].Kind != event.Refused ||
		!strings.Contains(got[0].Text, "more memory together than they may (1GiB)") || !strings.Contains(got[1].Text, "together as they may (64)") {
		t.Errorf("%+v", got)
	}
}
