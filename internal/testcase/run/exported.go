package run

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"rnix/internal/testcase"
	"rnix/ipc"
	"rnix/types"
)

// callsOf are the calls of an exported run. t hides where it ran, and renumber changes PIDs in what was asked.
func callsOf(x *ipc.ExportResponse, t tokens, renumber func(tool, input string) string) []testcase.Call {
	calls := []testcase.Call{}
	for n := range x.Procs {
		for _, turn := range x.Procs[n].Turns {
			for _, c := range turn.Calls {
				call := testcase.Call{Process: n, Step: turn.Step, Tool: c.Name, Input: t.out(renumber(c.Name, c.Input)), Output: t.out(c.Output)}
				if c.Failed {
					call.Error = string(c.Code)
				}
				calls = append(calls, call)
			}
		}
	}
	return calls
}

// talksOf are the answers of an exported run. What it asked for by PIDs, it asks for by those of a new daemon.
func talksOf(x *ipc.ExportResponse, t tokens, renumber func(tool, input string) string) []testcase.Talk {
	out := make([]testcase.Talk, len(x.Procs))
	for n := range x.Procs {
		p := &x.Procs[n]
		out[n].First = t.out(p.First)
		for _, turn := range p.Turns {
			a := testcase.Answer{Content: t.out(turn.Content), StopReason: turn.StopReason, Output: turn.Output,
				Input: turn.Input + turn.CacheRead + turn.CacheWrite, Cached: turn.CacheRead}
			if turn.Estimated {
				a.Input, a.Cached, a.Output = 0, 0, 0
			}
			for _, c := range turn.Calls {
				a.Calls = append(a.Calls, testcase.AnswerCall{ID: c.ID, Name: c.Name, Input: t.out(renumber(c.Name, c.Input))})
			}
			out[n].Answers = append(out[n].Answers, a)
		}
	}
	return out
}

// addressed are the tools that name other processes by their PIDs.
var addressed = []string{"wait", "send", "signal"}

// renumbering returns what changes the PIDs of a recorded run into those that it has in a daemon of its own: from 1, in
// the order of their starts.
func renumbering(x *ipc.ExportResponse) func(tool, input string) string {
	numbers := map[types.PID]int{}
	for n := range x.Procs {
		numbers[x.Procs[n].PID] = n + 1
	}
	change := func(v json.RawMessage) json.RawMessage {
		n, err := strconv.ParseUint(strings.TrimSpace(string(v)), 10, 64)
		if to, known := numbers[types.PID(n)]; err == nil && known {
			return json.RawMessage(strconv.Itoa(to))
		}
		return v
	}
	return func(tool, input string) string {
		if !slices.Contains(addressed, tool) {
			return input
		}
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(input), &m) != nil {
			return input
		}
		if v, ok := m["pid"]; ok {
			m["pid"] = change(v)
		}
		var list []json.RawMessage
		if json.Unmarshal(m["pids"], &list) == nil && list != nil {
			for i := range list {
				list[i] = change(list[i])
			}
			m["pids"], _ = json.Marshal(list)
		}
		b, err := json.Marshal(m)
		if err != nil {
			return input
		}
		return string(b)
	}
}

func same(_, input string) string { return input }
