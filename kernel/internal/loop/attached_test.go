package loop

import (
	"testing"

	rnixctx "rnix/context"
)

// TestABudgetReservesForImages: a few bytes of the record name one, and thousands of tokens are billed for it.
func TestABudgetReservesForImages(t *testing.T) {
	image := rnixctx.Message{Role: rnixctx.RoleUser, Content: "look", Attachments: []rnixctx.Attachment{{Name: "a.png", Media: "image/png", Width: 4000, Height: 3000}}}
	plain := image
	plain.Attachments = nil
	l := &Loop{req: &request{}, cfg: Config{Budget: &flat{}}}
	size := func(ms ...rnixctx.Message) int {
		p, err := rnixctx.NewPrompt("", ms)
		if err != nil {
			t.Fatal(err)
		}
		return bound(l, p)
	}
	one, none := size(image), size(plain)
	if more := one - none; more < 4800 || more > 4800+200 {
		t.Errorf("%d more for an image", more)
	}
	p, err := rnixctx.NewPrompt("", []rnixctx.Message{image})
	if err != nil {
		t.Fatal(err)
	}
	l.counted = counted{p.Generation, p.EncodedLen(), 1000, attachedTokens(l, p)}
	if got := bound(l, p); got != 1000 {
		t.Errorf("%d for a prompt of which 1000 were counted", got)
	}
	if got := size(image, image); got < 1000+4800 || got > 1000+4800+200 {
		t.Errorf("%d with one more", got)
	}
}

// flat is a budget without limits: a byte is half a token.
type flat struct{ Budget }

func (flat) PerByte() (float64, bool) { return 0.5, true }
