package cli

import (
	"strconv"
	"strings"
	"time"

	"rnix/ipc"
)

// showPast lists what was asked, with the answers.
func showPast(out *output, asks []ipc.Ask, now time.Time) {
	if out.json() {
		for i := range asks {
			out.object(&asks[i])
		}
		return
	}
	if len(asks) == 0 {
		out.talk("nothing is asked, and nothing was")
		return
	}
	rows := make([][]cell, len(asks))
	for i := range asks {
		k := &asks[i]
		when, who, answer := "-", "-", cell{"waits", yellow}
		if r := k.Answer; r != nil {
			when, who = clock(r.Time, now), whoAnswered(r)
			answer = text(strings.TrimSuffix(answerWords(r.Verdict)+pastGrant(r, now)+": "+oneLine(pastText(r)), ": "))
		}
		rows[i] = []cell{text(strconv.FormatUint(k.Number, 10)), text(k.PID.String()), text(oneLine(k.Name)), text(when), text(who), answer, text(oneLine(ruleOf(k))), text(oneLine(k.Text))}
	}
	out.table([]column{{name: "N", right: true}, {name: "PID", right: true}, {name: "NAME", max: 20, drop: 1}, {name: "ANSWERED", drop: 3}, {name: "BY", drop: 4}, {name: "ANSWER", max: 40},
		{name: "RULE", max: 24, drop: 2}, {name: "CALL"}}, rows)
}

func whoAnswered(r *ipc.Answered) string {
	switch r.By {
	case ipc.ByPerson:
		return "a person"
	case ipc.ByDefault:
		return "its default"
	}
	return "-"
}

// pastGrant says what else an answer allowed, and whether that was taken back.
func pastGrant(r *ipc.Answered, now time.Time) string {
	if r.For == "" {
		return ""
	}
	s := " for the " + string(r.For)
	if r.Match != "" {
		s += " (" + oneLine(r.Match) + ")"
	}
	if !r.Until.IsZero() {
		s += " until " + clock(r.Until, now)
	}
	if !r.Revoked.IsZero() {
		s += ", taken back"
	}
	return s
}

// pastText is what was answered, besides the verdict.
func pastText(r *ipc.Answered) string {
	if len(r.Input) > 0 {
		return string(r.Input)
	}
	return r.Text
}
