package tui

import (
	"errors"
	"rnix/types"
	"strings"
	"testing"
)

func TestTheDashboardShowsTheTreeAndWhatIsKnownOfTheChosenOne(t *testing.T) {
	a, c, d := proc(1, 0, "lead"), proc(2, 1, "review"), proc(3, 1, "tests")
	c.State, c.PausedAt = stateSuspended, begin
	b := newBench(t, false, a, c, d, proc(4, 0, "other"))
	b.run()
	for _, want := range []string{"lead", "├ ⏸ review", "└ ● tests", "1 Detail", "uuid       " + uuid(1).String(), "4 running · 10,000 tokens · $0.10"} {
		b.sees(want)
	}
	b.press("down")
	b.run()
	b.sees("uuid       " + uuid(2).String())
}

func TestTheHelpComesFromTheTableOfKeys(t *testing.T) {
	b := newBench(t, false, proc(1, 0, "lead"))
	b.press("?")
	text := b.help
	var all strings.Builder
	for _, p := range text.parts {
		all.WriteString(p.text + "\n")
	}
	for _, k := range b.keys {
		if (k.place == inList || k.place == inDash || k.place == anywhere) && !strings.Contains(all.String(), k.what) {
			t.Errorf("the help lacks %q", k.what)
		}
	}
}

func TestWhatWentWrongIsSaidWithoutTheUUIDOfWhatIsOnTheScreen(t *testing.T) {
	const id = "01a20050-61d7-7e5b-88c7-11efa9db6327"
	for _, c := range []struct {
		err  error
		want string
	}{
		{types.Errorf(types.ErrNotFound, "SignalTree", id, "the process has ended"), "the process has ended"},
		{types.Errorf(types.ErrNotFound, "Call", id, "SignalTree %s: the process has ended", id), "the process has ended"},
		{types.Errorf(types.ErrNotFound, "Open", "/dev/fs", "there is none"), "/dev/fs: there is none"},
		{errors.New("plain"), "plain"},
	} {
		if got := errorText(c.err); got != c.want {
			t.Errorf("%v is said as %q, want %q", c.err, got, c.want)
		}
	}
}
