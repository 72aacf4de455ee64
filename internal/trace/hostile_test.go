package trace

import "testing"

// Histories can say that two processes have started each other: nobody waits for what it is within.
func TestProcessesThatSeemToHaveStartedEachOtherHaveAPath(t *testing.T) {
	root := tell(t, 1, noon).begin().ask(0, "spawn", "spawn").start(0, "spawn", 2, false).start(1, "spawn", 3, false)
	a := tell(t, 2, root.now).begin().ask(0, "spawn").start(0, "spawn", 3, false).pass(5*s).result(0, "spawn", 5*s, "").done().exit(0, "completed")
	b := tell(t, 3, root.now).begin().ask(0, "spawn").start(0, "spawn", 2, false).pass(5*s).result(0, "spawn", 5*s, "").done().exit(0, "completed")
	root.pass(5*s).result(0, "spawn", 5*s, "").result(1, "spawn", 5*s, "").done().exit(0, "completed")
	tr := of(t, root.now, root.source(), with(a, 1), with(b, 1))
	if len(tr.Critical) == 0 || tr.Root().Dur != 5*s {
		t.Errorf("%s takes %s", path(tr), tr.Root().Dur)
	}
}
