package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/permit"
	"rnix/ipc"
)

// questionText is what an agent wants to know.
func questionText(t *Theme, q *ipc.Question) string {
	var b strings.Builder
	b.WriteString(t.clean(strings.TrimSpace(q.Text)) + "\n")
	for i, choice := range q.Choices {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%2d  %s\n", i+1, t.line(choice))
	}
	if q.Default != "" {
		when := ""
		if !q.Until.IsZero() {
			when = " (at " + q.Until.Local().Format("2006-01-02 15:04:05") + ")"
		}
		section(&b, "without an answer it would take"+when, t.clean(q.Default))
	}
	return b.String()
}

// askReply asks for the answer to a question.
func askReply(m *Model) tea.Cmd {
	a := m.asking
	if a.cur == nil || a.over != "" || a.sent {
		return a.answer(m, nil) // which says why not
	}
	label := "your answer:"
	if len(a.cur.Question.Choices) > 0 {
		label = "your answer, or the number of a choice:"
	}
	m.input = &input{label: label, enter: func(m *Model, text string) tea.Cmd {
		if err := permit.CheckAnswer(text); err != nil {
			m.fail(permit.Reason(err))
			return nil
		}
		return a.answer(m, func(r *ipc.AnswerRequest) { r.Allow, r.Text = true, text })
	}}
	return nil
}
