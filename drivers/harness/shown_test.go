package harness

import (
	"strings"
	"testing"

	rnixctx "rnix/context"
)

// An agent CLI is told words alone. It hears that it is not shown what a person attaches: with the task, while it works, and when it is started again.
func TestACommandLineHearsWhatItIsNotShown(t *testing.T) {
	shown := func(text, name string) rnixctx.Message {
		a := rnixctx.Attachment{Name: name, Media: "image/png", Bytes: 70, Width: 1, Height: 1}
		return rnixctx.Message{Role: rnixctx.RoleUser, Content: rnixctx.WithLabels(text, []rnixctx.Attachment{a}), Attachments: []rnixctx.Attachment{a}}
	}
	again := begun + heard + shell + `read L; case $L in *"faster"*"b.png is not shown: this model is shown no images"*) ;; *) exit 3;; esac; echo '{"kind":"system","subtype":"heard"}'` + "\n" + finish + hang
	b := newBench(t, false, again)
	b.ms = []rnixctx.Message{shown("the task", "a.png")}
	b.ask()
	if p := b.starts[0].Prompt; !strings.Contains(p, "[image a.png 1×1, 70 bytes]\n[a.png is not shown: this model is shown no images]") {
		t.Errorf("%q", p)
	}
	b.ms = append(b.ms, shown("go faster", "b.png"))
	if r := b.ask(); r.Content != "all done" {
		t.Errorf("%+v", r)
	}
	mute := newBench(t, true, begun+shell+finish, begun+finish)
	mute.ask()
	mute.ms = append(mute.ms, shown("go faster", "b.png"))
	if r := mute.ask(); r.Content != "all done" || len(mute.starts) != 2 || !strings.Contains(mute.starts[1].Prompt, "[b.png is not shown: this model is shown no images]") {
		t.Errorf("%+v, started with %+v", r, mute.starts)
	}
}
