package cli

import (
	"context"
	"fmt"
	"strings"

	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// intentLines are the intent that processes have in common, or that of each with its PID.
func intentLines(list []compared) []string {
	one := true
	for i := range list {
		one = one && sameText(list[i].Intent, list[0].Intent)
	}
	if one {
		return []string{oneLine(list[0].Intent)}
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = fmt.Sprintf("PID %s: %s", list[i].PID, oneLine(list[i].Intent))
	}
	return out
}

// comparedResult is the result of a process that is compared, in JSON.
type comparedResult struct {
	PID    types.PID  `json:"pid"`
	UUID   types.UUID `json:"uuid"`
	Name   string     `json:"name,omitempty"`
	State  string     `json:"state"`
	Result string     `json:"result"`
}

// compareResults shows in what the results of processes differ from that of the first one.
func compareResults(ctx context.Context, c *ipc.Client, out *output, list []compared) error {
	results := make([]comparedResult, len(list))
	for i := range list {
		d, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: list[i].UUID.String()})
		if err != nil {
			return err
		}
		results[i] = comparedResult{PID: d.PID, UUID: d.UUID, Name: d.Name, State: d.State, Result: d.Result}
	}
	if out.json() {
		for i := range results {
			out.object(&results[i])
		}
		return nil
	}
	if len(results) == 1 {
		out.talk("there is no result beside that of PID %d; name another process: rnix compare --results %d PROCESS", results[0].PID, results[0].PID)
	}
	for i := range results {
		if results[i].Result == "" {
			out.warn(fmt.Sprintf("PID %s has no result yet: it is %s", results[i].PID, oneLine(results[i].State)))
		}
	}
	first := &results[0]
	for i := range results[1:] {
		r := &results[i+1]
		diff := workspace.Unified(answerText(first), answerText(r))
		if diff == "" {
			out.talk("the results of PIDs %d and %d are the same", first.PID, r.PID)
			continue
		}
		out.diff(fmt.Appendf(nil, "--- %s\n+++ %s\n%s", resultTitle(first), resultTitle(r), diff))
	}
	return nil
}

// answerText is a result that ends in a line end, as a diff needs it; an empty one has no line.
func answerText(r *comparedResult) []byte {
	if r.Result == "" {
		return nil
	}
	return []byte(strings.TrimRight(r.Result, "\n") + "\n")
}

func resultTitle(r *comparedResult) string {
	return "PID " + r.PID.String() + with(" ", oneLine(r.Name))
}
