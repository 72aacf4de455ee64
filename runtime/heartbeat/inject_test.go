package heartbeat_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rnix/runtime/heartbeat"
)

// offering offers the first message that was neither acknowledged nor declared dead.
func offering(ids ...string) *platform {
	done := map[string]bool{}
	return &platform{answer: func(_ int, body map[string]any) string {
		if id, ok := body["ackedInject"].(string); ok {
			done[id] = true
		}
		if list, ok := body["ackedInjects"].([]any); ok {
			for _, id := range list {
				done[id.(string)] = true
			}
		}
		if list, ok := body["deadLetteredInjects"].([]any); ok {
			for _, d := range list {
				done[d.(map[string]any)["deliveryId"].(string)] = true
			}
		}
		for _, id := range ids {
			if !done[id] {
				return fmt.Sprintf(`{"refreshed":true,"inject":{"deliveryId":%q,"text":"hello","kind":"user","turnId":"t"}}`, id)
			}
		}
		return ""
	}}
}

func TestAnInjectIsHandedOutOnceAndAcknowledgedInTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := offering("d1", "d2")
		var got []heartbeat.InjectPayload
		p := begin(t, server, func(c *heartbeat.Config) {
			c.OnInject = func(m heartbeat.InjectPayload) bool { got = append(got, m); return true }
		})
		time.Sleep(2 * time.Minute)
		p.Stop()
		if len(got) != 2 || got[0] != (heartbeat.InjectPayload{DeliveryID: "d1", Text: "hello", Kind: "user", TurnID: "t"}) || got[1].DeliveryID != "d2" {
			t.Errorf("handed out %+v", got)
		}
		for i, b := range server.seen()[1:] {
			if want := []string{"d1", "d2", "d2", "d2", "d2"}[i]; b["ackedInject"] != want {
				t.Errorf("request %d acknowledges %v, not %s", i+2, b["ackedInject"], want)
			}
		}
	})
}

func TestARejectedInjectComesAgainUntilItIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := offering("d1")
		n := 0
		p := begin(t, server, func(c *heartbeat.Config) {
			c.OnInject = func(heartbeat.InjectPayload) bool { n++; return n == 3 }
		})
		time.Sleep(4 * time.Minute)
		p.Stop()
		if n != 3 {
			t.Errorf("handed out %d times", n)
		}
	})
}

func TestWithoutAConsumerNothingIsAcknowledgedNotEvenAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := offering("d1")
		p := begin(t, server, nil)
		time.Sleep(time.Minute)
		p.Stop()
		for _, b := range server.seen() {
			if b["ackedInject"] != nil {
				t.Errorf("acknowledged: %v", b)
			}
		}
	})
}

func TestStopTellsWhatWasNotToldYetAndOnlyThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := offering("d1")
		p := begin(t, server, func(c *heartbeat.Config) {
			c.Interval = 24 * time.Hour
			c.OnInject = func(heartbeat.InjectPayload) bool { return true }
		})
		p.Stop()
		if b := server.seen(); len(b) != 2 || b[1]["ackedInject"] != "d1" {
			t.Errorf("requests are %v", b)
		}
		nothing := &platform{}
		p = begin(t, nothing, func(c *heartbeat.Config) { c.Interval = 24 * time.Hour })
		p.Stop()
		if n := len(nothing.seen()); n != 1 {
			t.Errorf("with nothing to tell: %d requests", n)
		}
	})
}

func TestADeadLetterIsToldOnceAndIsNoAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := offering("d1")
		var p *heartbeat.Pulser
		n := 0
		p = begin(t, server, func(c *heartbeat.Config) {
			c.OnInject = func(m heartbeat.InjectPayload) bool { n++; return false }
		})
		p.DeadLetterInject("d1", "the session is over")
		p.DeadLetterInject("d1", "again")
		p.AckInject("d1")
		time.Sleep(90 * time.Second)
		p.DeadLetterInject("d2", "at the end")
		p.Stop()
		b := server.seen()
		letters := func(i int) string { return fmt.Sprint(b[i]["deadLetteredInjects"]) }
		if n != 1 || letters(1) != "[map[deliveryId:d1 reason:the session is over]]" || letters(2) != "<nil>" ||
			letters(len(b)-1) != "[map[deliveryId:d2 reason:at the end]]" {
			t.Errorf("handed out %d times; requests are %v", n, b)
		}
		for _, b := range b {
			if b["ackedInject"] != nil {
				t.Errorf("a dead letter is acknowledged: %v", b)
			}
		}
	})
}

func TestSeveralAcknowledgementsBetweenTwoTicksAreAllTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{}
		p := begin(t, server, nil)
		for _, id := range []string{"a", "b", "c"} {
			p.AckInject(id)
		}
		time.Sleep(time.Minute)
		b := server.seen()[1]
		if list, _ := b["ackedInjects"].([]any); !slices.Equal(list, []any{"a", "b", "c"}) || b["ackedInject"] != "c" {
			t.Errorf("request is %v", b)
		}
	})
}

func TestARefusalHandsOutNoInject(t *testing.T) {
	for _, class := range []string{"", "interactive"} {
		synctest.Test(t, func(t *testing.T) {
			server := &platform{answer: func(int, map[string]any) string {
				return `{"refreshed":false,"inject":{"deliveryId":"d","text":"hello","kind":"user","turnId":"t"}}`
			}}
			p := begin(t, server, func(c *heartbeat.Config) {
				c.SessionClass = class
				c.OnInject = func(heartbeat.InjectPayload) bool { t.Error("an inject was handed out"); return true }
			})
			p.Stop()
			for _, b := range server.seen() {
				if b["ackedInject"] != nil {
					t.Errorf("acknowledged: %v", b)
				}
			}
		})
	}
}

func TestDeadLettersAreBoundedAndTheOldestGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &platform{}
		p := begin(t, server, func(c *heartbeat.Config) { c.Interval = 24 * time.Hour })
		for i := range 130 {
			p.DeadLetterInject(fmt.Sprint("d", i), "nobody is there")
		}
		p.Stop()
		b := server.seen()
		letters, _ := b[len(b)-1]["deadLetteredInjects"].([]any)
		if len(letters) != 128 || letters[0].(map[string]any)["deliveryId"] != "d2" || letters[127].(map[string]any)["deliveryId"] != "d129" {
			t.Errorf("%d letters in %d requests", len(letters), len(b))
		}
	})
}
