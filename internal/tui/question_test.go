package tui

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"rnix/internal/permit"
	"rnix/ipc"
)

func TestAQuestionIsSeenWholeAndAnsweredWithAText(t *testing.T) {
	until := time.Date(2031, 1, 2, 3, 4, 5, 0, time.Local)
	for _, key := range []string{"y", "f", "e"} { // what allows a call answers nothing by itself
		b, _ := asksBench(t, func(o *open) {
			a := &o.asks[0]
			a.Tool, a.Path, a.Rule, a.Text, a.Input = "ask", permit.AskPath, "", `"Which\x1b database?"`, json.RawMessage(`{}`)
			a.Question = &ipc.Question{Text: "Which\x1b[2J database?\nThere are two.", Choices: []string{"Postgres", "SQLite"}, Default: "SQLite", Until: until}
		})
		b.sees("PID 7 (agent07) asks you")
		b.sees("There are two.")
		b.sees(" 2  SQLite")
		b.sees("WITHOUT AN ANSWER IT WOULD TAKE (AT 2031-01-02 03:04:05)")
		if text := b.screenText(); strings.Contains(text, "[2J") && strings.Contains(text, "\x1b[2J database") || strings.Contains(text, "rule ") {
			t.Errorf("%q", text)
		}
		b.press(key)
		b.sees("your answer, or the number of a choice:")
		b.press("enter")
		b.sees("the answer is empty")
		if b.src.last("answer") != "" {
			t.Errorf("an empty answer was given: %s", b.src.last("answer"))
		}
		b.press(key, "2", "enter")
		b.run()
		if got := b.src.last("answer"); !strings.Contains(got, `"text":"2"`) || !strings.Contains(got, `"allow":true`) || strings.Contains(got, `"for"`) {
			t.Errorf("%s asks: %s", key, got)
		}
	}
}
