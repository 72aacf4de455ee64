package tui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// hunt is a search through the steps of a process, by the daemon: in their lines, answers, calls, results and errors. It goes on where
// an answer has ended, and once around. It belongs to the goroutine of the program.
type hunt struct {
	get   *fetch[ipc.StepsRequest, ipc.ListStepsResponse]
	text  string
	by    int // 1 = down, -1 = up
	start int // the step where it began; what was behind it is looked at last
	at    int // the cursor: how far it is
	on    bool
	round bool // the end was reached
	none  bool // nothing has it
}

// begin looks for a text from a step on: down, up (by < 0), or with 0 down and also in that step.
func (h *hunt) begin(text string, from, by int) {
	h.get.forget()
	h.text, h.by, h.on, h.round, h.none = text, 1, text != "", false, false
	switch {
	case by < 0:
		h.by = -1
	case by == 0:
		from = max(from-1, 0)
	}
	h.start, h.at = from, from
}

// stop gives it up.
func (h *hunt) stop() { h.get.forget(); h.on, h.none = false, false }

// next asks for the next part; nil = nothing is to be asked.
func (h *hunt) next(target string) tea.Cmd {
	if !h.on || h.get.busy || h.get.waits || h.get.err != nil {
		return nil
	}
	req := ipc.StepsRequest{Target: target, Find: h.text, Limit: 1, Bare: true, Last: h.by < 0}
	if h.by < 0 {
		if req.Before = h.at; h.round {
			req.After = h.start - 1
		}
	} else {
		if req.After = h.at; h.round {
			req.Before = h.start + 1
		}
	}
	return h.get.about(req)
}

// update takes a message in, and returns the step that was found; 0 = none is yet.
func (h *hunt) update(msg tea.Msg) (tea.Cmd, int) {
	cmd, fresh := h.get.update(msg)
	if !fresh || !h.on {
		return cmd, 0
	}
	r := &h.get.got
	switch {
	case h.get.err != nil:
		h.on = false
	case len(r.Steps) > 0:
		h.on = false
		return cmd, r.Steps[0].StepNumber
	default:
		to := r.Next
		if h.by < 0 {
			to = r.Prev
		}
		if h.round && (to == 0 || h.by > 0 && to >= h.start || h.by < 0 && to <= h.start) || to != 0 && to == h.at {
			h.on, h.none = false, true
		} else if h.at = to; to == 0 {
			h.round = true
			if h.by > 0 && h.start == 0 {
				h.on, h.none = false, true
			}
		}
	}
	return cmd, 0
}

// state is what to say of it; empty = nothing. text is clean.
func (h *hunt) state(t *Theme, last int) string {
	switch {
	case h.on:
		return fmt.Sprintf("looking for %s: at step %s of %s", t.line(h.text), number(max(h.at, 1)), number(last))
	case h.none:
		return "no step has " + t.line(h.text)
	case h.text != "" && h.get.err != nil:
		return "looking for " + t.line(h.text) + ": " + t.line(errorText(h.get.err))
	}
	return ""
}
