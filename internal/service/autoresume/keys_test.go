package autoresume

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/step"
)

func TestWhoHasNoKeyIsLookedAtEverMoreRarely(t *testing.T) {
	k, id, begun := keyPauses{by: map[string]keyPause{}}, "a", time.Now()
	looked, last, longest := 0, begun, time.Duration(0)
	now := begun
	for ; now.Sub(begun) < 24*time.Hour; now = now.Add(wakeEvery) {
		if k.due(id, time.Time{}, now) {
			longest, last = max(longest, now.Sub(last)), now
			looked++
		}
	}
	if looked > 110 || longest != maxKeyPause {
		t.Errorf("looked %d times in a day, at most after %s", looked, longest)
	}
	if !k.due("b", time.Time{}, now) {
		t.Error("another waits for the pause of the first")
	}
	now = now.Add(3 * maxKeyPause)
	if !k.due(id, time.Time{}, now) || !k.due(id, time.Time{}, now.Add(wakeEvery)) {
		t.Error("who has not waited for long does not begin anew")
	}
	for range 9 {
		now = now.Add(maxKeyPause)
		k.due(id, time.Time{}, now)
	}
	if k.due(id, time.Time{}, now.Add(wakeEvery)) || !k.due(id, now.Add(time.Second), now.Add(wakeEvery)) || !k.due(id, time.Time{}, now.Add(2*wakeEvery)) {
		t.Error("a key that somebody else has brought ends no pause")
	}
}

// manyKeys is a key command that all wait for.
type manyKeys struct {
	asked, read int
	there       bool
	moved       time.Time
}

func (m *manyKeys) There(*step.Settled) bool { m.asked++; return m.there }

func (m *manyKeys) KeySource(*step.Settled) string { m.read++; return "secret-tool" }

func (m *manyKeys) KeyMoved(string) time.Time { return m.moved }

// Fifty that wait for one command have it asked once, and its answer is for all of them.
func TestThoseThatWaitForOneCommandHaveItAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, keys := newWorld(t), &manyKeys{}
		w.Keys = keys
		for i := range 50 {
			w.write(fmt.Sprint("p", i), "", step.Marker{Name: step.MarkerSuspended, Text: "key: none", Detail: []byte(`{"kind":"key"}`)})
		}
		k := keyPauses{by: map[string]keyPause{}}
		for range 30 { // five minutes
			<-time.After(wakeEvery)
			lookForKeys(t.Context(), w.Service, &k)
		}
		if keys.asked != 5 || keys.read != 50 || len(w.done) != 0 {
			t.Errorf("asked %d times, read %d, resumed %d", keys.asked, keys.read, len(w.done))
		}
		keys.there, keys.moved = true, time.Now() // a person has unlocked it for another process
		<-time.After(wakeEvery)
		if lookForKeys(t.Context(), w.Service, &k); len(w.done) != 50 {
			t.Errorf("%d are resumed", len(w.done))
		}
	})
}
