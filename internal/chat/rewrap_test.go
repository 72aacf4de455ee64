package chat

import (
	"io"
	"os"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
)

func TestWhatIsDrawnIsFoundWhenTheTerminalWrapsItAnew(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r := &rewrapping{f: in}
	th := &tui.Theme{Color: true}
	lines := []string{strings.Repeat("a", 79), paint(th, bold, strings.Repeat("b", 40)), "", "› c", "the foot"}
	write := func(s string) {
		if _, err := io.WriteString(r, s); err != nil {
			t.Fatal(err)
		}
	}
	r.draws(th, lines, tea.NewCursor(3, 3))
	write("1")
	r.resized(40) // the first line takes two rows, the second just fits
	write("2")
	write("3")
	r.resized(39)
	r.resized(100) // before anything is drawn: it is as it was
	write("4")
	r.draws(th, lines, tea.NewCursor(45, 3))
	write("5")
	r.resized(20) // three more, one more, and two of the line of the cursor
	write("6")
	r.draws(th, lines, nil)
	write("7")
	r.resized(10) // it is not known where the cursor is
	write("8")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if want := "1\x1b[1A2345\x1b[6A678"; string(got) != want || err != nil {
		t.Errorf("%q was written, want %q, %v", got, want, err)
	}
	if rewraps([]string{"TERM=xterm", "TMUX="}) || !rewraps([]string{"TERM=x", "TMUX=/tmp/tmux,1,0"}) {
		t.Error("tmux is not known")
	}
}
