package lifecycle

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// A fork is told again what persons have said to its origin, and neither what the kernel has noted there nor what others have sent.
func TestAForkIsToldAgainWhatPersonsHaveSaid(t *testing.T) {
	shown := []rnixctx.Attachment{{Name: "a.png", Media: "image/png", SHA256: strings.Repeat("a", 64)}}
	var all []step.Record
	add := func(r step.Record) { r.Seq = uint64(len(all) + 1); all = append(all, r) }
	mail := func(seq uint64, kind step.MailKind, from types.PID, text string) {
		t.Helper()
		r, err := step.MailRecord(step.Mail{Seq: seq, Kind: kind, From: from, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		add(r)
	}
	told := func(text string, delivered ...uint64) {
		m := &rnixctx.Message{Role: rnixctx.RoleUser, Content: text}
		if text == "go faster" {
			m.Attachments = shown
		}
		add(step.Record{Message: m, Delivered: delivered})
	}
	input := func(text string) { add(step.Record{Marker: step.InputMarker(1, step.Said{Text: text})}) }
	told("the task")
	input("before the fork")
	told("before the fork")
	mail(1, step.MailSteer, 0, "go faster")
	cut := uint64(len(all))
	mail(2, step.MailChild, 7, "PID 7 has completed")
	mail(3, step.MailMessage, 7, "I have found it")
	told("go faster", 1)
	told("[MESSAGES] What follows was sent to you by others.", 2, 3)
	told("[MCP SERVERS] away is back.")
	told("[Your last answer was empty. Go on with the task, or finish it with complete.]")
	mail(4, step.MailSteer, 0, "[Not accepted: by me]")
	told("[Not accepted: by me]", 4)
	input("and [this] too")
	told("and [this] too")
	input(step.ForkNotice + ", from the end of its step 2." + step.ForkGoesOn + step.ForkLeftOut + "it had called:\n- x." + step.ForkAgain + "\n\nin the fork")
	input(step.ForkNotice + ", from the end of its step 2." + step.ForkGoesOn)
	mail(5, step.MailSteer, 0, "it waits, and stays with the origin")
	input("not heard yet")

	got := saidSince(records(all, nil), cut)
	var texts []string
	for _, s := range got.said {
		texts = append(texts, s.Text)
	}
	if want := []string{"go faster", "[Not accepted: by me]", "and [this] too", "in the fork", "not heard yet"}; !slices.Equal(texts, want) || got.letters != 2 {
		t.Errorf("%q, %d letters; want %q", texts, got.letters, want)
	}
	if text, as := got.together(); !strings.HasPrefix(text, "\n\ngo faster\n\n[Not") || len(as) != 1 || as[0].Name != "a.png" {
		t.Errorf("%q, %v", text, as)
	}
	if got := saidSince(records(all[:cut+3], errors.New("damaged")), cut); len(got.said) != 1 {
		t.Errorf("before damage: %+v", got)
	}
	if got := saidSince(records(all, nil), uint64(len(all))); len(got.said)+got.letters != 0 {
		t.Errorf("behind the end: %+v", got)
	}
}

// What a fork is shown again has the bounds of one message, in number and in bytes, together with what a person gives it.
func TestAForkIsShownAgainWhatFitsIntoAMessage(t *testing.T) {
	of := func(sizes ...int64) (out []rnixctx.Attachment) {
		for _, n := range sizes {
			out = append(out, rnixctx.Attachment{Bytes: n})
		}
		return out
	}
	const all = int64(ipc.MaxAttached)
	for _, c := range []struct {
		given []ipc.Attachment
		shown []rnixctx.Attachment
		want  []rnixctx.Attachment
	}{
		{nil, of(all), of(all)},
		{[]ipc.Attachment{{Data: make([]byte, 10)}}, of(all), nil},
		{[]ipc.Attachment{{Data: make([]byte, 10)}}, of(all-10, 1), of(all - 10)},
		{nil, of(all-5, 6, 5, 1), of(all-5, 5)},
		{make([]ipc.Attachment, rnixctx.MaxAttachments-1), of(3, 2), of(3)},
		{make([]ipc.Attachment, rnixctx.MaxAttachments), of(1), nil},
	} {
		if got := fitting(c.given, c.shown); !slices.Equal(got, c.want) {
			t.Errorf("%d given, %v: %v, want %v", len(c.given), c.shown, got, c.want)
		}
	}
}

// records are those of a history, behind which is what cannot be read.
func records(all []step.Record, err error) iter.Seq2[step.Record, error] {
	return func(yield func(step.Record, error) bool) {
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(step.Record{}, err)
		}
	}
}
