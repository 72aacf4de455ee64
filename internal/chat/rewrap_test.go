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
	wide := 100
	r := &rewrapping{f: in, width: func() int { return wide }}
	th := &tui.Theme{Color: true}
	lines := []string{strings.Repeat("a", 79), paint(th, bold, strings.Repeat("b", 40)), "", "› c", "the foot"}
	write := func(s string) {
		if n, err := io.WriteString(r, s); err != nil || n != len(s) {
			t.Fatal(n, err)
		}
	}
	r.draws(th, lines, tea.NewCursor(3, 3), false)
	write("1")
	wide = 40 // the first line takes two rows, the second just fits; nobody has said it yet
	write("2")
	write("3")
	wide = 39
	wide = 100 // before anything is drawn: it is as it was
	write("4")
	r.draws(th, lines, tea.NewCursor(45, 3), false)
	write("5")
	wide = 20 // three more, one more, and two of the line of the cursor
	write("6")
	wide = 10 // what was drawn at 20 was cut there: one more, one more, and one of the line of the cursor
	write("7")
	r.draws(th, lines, nil, false)
	write("8")
	wide = 5 // it is not known where the cursor is
	write("9")
	wide = 100
	r.draws(th, lines, tea.NewCursor(3, 3), false)
	write("10")
	wide = 40
	write("\r\n\x1b[2A\x1b[1La line\r\n") // goes up, and leaves the cursor where the frame begins
	wide = 30
	write("11")
	wide = 0 // it does not say it
	write("12")
	r.draws(th, lines, tea.NewCursor(0, 0), true)
	write("13")
	write("14")
	r.draws(th, lines, nil, false)
	write("15") // there is none
	r.draws(th, lines, tea.NewCursor(0, 0), true)
	write("16")
	r.draws(th, lines, tea.NewCursor(3, 3), false)
	write("17")           // Bubble Tea has not seen that it was hidden, and does not show it
	write("18\r\x1b[J19") // what is cleared does not become history
	r.leave()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(out)
	got := strings.NewReplacer("\x1b[?7l", "<", "\x1b[?7h", ">", "\x1b[?25l", "-", "\x1b[?25h", "+").Replace(string(raw))
	if want := "<1>\x1b[1A<2><3><4><5>\x1b[6A<6>\x1b[3A<7><8><9><10>\x1b[1A\r\n\x1b[2A\x1b[1La line\r\n<11><12><13>-<14>-<15><16>-<17>+<18\r\x1b[C\x1b[J\r\x1b[2K19>+"; got != want || err != nil {
		t.Errorf("%q was written, want %q, %v", got, want, err)
	}
	if rewraps([]string{"TERM=xterm", "TMUX="}) || !rewraps([]string{"TERM=x", "TMUX=/tmp/tmux,1,0"}) {
		t.Error("tmux is not known")
	}
}
