package autoresume

import (
	"testing"
	"time"

	"rnix/types"
)

func TestWhoHasNoKeyIsLookedAtEverMoreRarely(t *testing.T) {
	k, id, begun := keyPauses{}, types.NewUUID(), time.Now()
	looked, last, longest := 0, begun, time.Duration(0)
	now := begun
	for ; now.Sub(begun) < 24*time.Hour; now = now.Add(wakeEvery) {
		if k.due(id, now) {
			longest, last = max(longest, now.Sub(last)), now
			looked++
		}
	}
	if looked > 110 || longest != maxKeyPause {
		t.Errorf("looked %d times in a day, at most after %s", looked, longest)
	}
	if !k.due(types.NewUUID(), now) {
		t.Error("another waits for the pause of the first")
	}
	now = now.Add(3 * maxKeyPause)
	if !k.due(id, now) || !k.due(id, now.Add(wakeEvery)) {
		t.Error("who has not waited for long does not begin anew")
	}
}
