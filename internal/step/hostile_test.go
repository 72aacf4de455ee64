package step

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/types"
)

// What stands in a history is not ours alone: whatever numbers it has, those who read it end.
func TestNoNumbersOfAHistoryBreakWhoReadsIt(t *testing.T) {
	numbers := rapid.OneOf(rapid.IntRange(-2, 9), rapid.SampledFrom([]int{-1 << 62, 1 << 40, 1 << 62}))
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) int { return numbers.Draw(t, name) }
		var records []Record
		for i := range rapid.IntRange(0, 12).Draw(t, "records") {
			r := Record{Seq: uint64(i + 1), Time: time.Unix(int64(i), 0)}
			switch r.Kind = rapid.SampledFrom([]Kind{KindMessage, KindMessage, KindStep, KindMarker}).Draw(t, "kind"); r.Kind {
			case KindMessage:
				r.Message = &rnixctx.Message{Role: rapid.SampledFrom([]rnixctx.Role{rnixctx.RoleUser, rnixctx.RoleAssistant, rnixctx.RoleTool, "x"}).Draw(t, "role"),
					Content: rapid.SampledFrom([]string{"", "abc", "[note"}).Draw(t, "content")}
				if r.Message.Role == rnixctx.RoleAssistant && rapid.Bool().Draw(t, "answer") {
					r.Answer = &Answer{Step: number("step"), Prompt: number("prompt"), Input: number("input")}
				}
			case KindStep:
				r.Step = &StepRecord{StepNumber: number("step"), MessageCount: number("count"), Input: number("input"), Estimated: rapid.Bool().Draw(t, "estimated")}
			default:
				detail, _ := json.Marshal(map[string]any{"messages": []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "abc"}}})
				r.Marker = &Marker{Name: rapid.SampledFrom([]string{MarkerCompaction, MarkerInput, MarkerMail, MarkerSpawn}).Draw(t, "marker"), Detail: detail}
			}
			records = append(records, r)
		}
		o := NewOutline()
		for i := range records {
			o.add(&records[i])
		}
		for n := range o.prompts {
			if view, _, err := o.View(n); err != nil || len(view) > len(records) {
				t.Errorf("the prompt of step %d: %d messages, %v", n, len(view), err)
			}
		}
		h, err := Fold(types.NewUUID(), func(yield func(Record, error) bool) {
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 10 {
			if p, err := h.Profile(ProfileOptions{Step: n, Preview: 3}); err == nil && p.Shown > len(p.Segments) {
				t.Errorf("the profile of step %d shows %d of %d messages", n, p.Shown, len(p.Segments))
			}
		}
		h.Ledger()
		h.LiveLedger()
	})
}
