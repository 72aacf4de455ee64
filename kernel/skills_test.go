package kernel

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnAgentIsToldTheDayAndTheSystemOncePerRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Process{card: new(card)}
		p.WorkDir = "/work"
		told := func() string {
			p.mu.Lock()
			defer p.mu.Unlock()
			tellLocked(p, "Be brief.", nil)
			return p.system
		}
		first := told()
		if !strings.HasPrefix(first, "Be brief.\n\nToday is "+time.Now().Local().Format("Monday, 2 January 2006")+". The system is ") ||
			!strings.HasSuffix(first, ".\nYour working directory is /work. Relative paths start there.") {
			t.Fatalf("told %q", first)
		}
		time.Sleep(48 * time.Hour)
		if again := told(); again != first {
			t.Errorf("two days later %q: nothing of it can be cached", again)
		}
	})
}
