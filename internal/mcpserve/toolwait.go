package mcpserve

import (
	"context"
	"time"

	"rnix/internal/kernelmcp"
	"rnix/ipc"
	"rnix/types"
)

// How long a wait takes if nothing else is said: less than the minute after which many clients give up.
const (
	usualWait = 45 * time.Second
	mostWait  = 24 * time.Hour
)

type waitIn struct {
	Process     process `json:"process"`
	WaitSeconds float64 `json:"wait_seconds,omitempty" jsonschema:"return after so long, whether it has ended or not; default 45"`
}

// outcome is how a process stands after a wait.
type outcome struct {
	PID       uint64  `json:"pid"`
	UUID      string  `json:"uuid"`
	State     string  `json:"state" jsonschema:"ended, suspended or running"`
	Waits     string  `json:"waits,omitempty" jsonschema:"what it waits for, if it has not ended"`
	ExitCode  *int    `json:"exit_code,omitempty" jsonschema:"0 = it has completed its task"`
	Reason    string  `json:"reason,omitempty"`
	Error     string  `json:"error,omitempty"`
	Result    string  `json:"result,omitempty"`
	More      int     `json:"more_bytes,omitempty" jsonschema:"so many bytes of the result are not shown; the resource rnix://proc/UUID/result has all of it"`
	Steps     int     `json:"steps"`
	Tokens    int     `json:"tokens"`
	CostUSD   float64 `json:"cost_usd,omitempty"`
	ElapsedMs int64   `json:"elapsed_ms"`
}

func (p looker) wait(ctx context.Context, in waitIn) (out outcome, words string, err error) {
	ms, err := seconds("wait_seconds", in.WaitSeconds, usualWait, mostWait)
	if err != nil {
		return out, "", err
	}
	if out, err = p.await(ctx, string(in.Process), ms); err != nil {
		return out, "", err
	}
	return out, endOf(&out), nil
}

// await waits for a process, so many milliseconds at most. One that has not ended then is no error.
func (p looker) await(ctx context.Context, target string, ms int64) (out outcome, err error) {
	r, err := call(ctx, p.Processes, ipc.Wait, ipc.WaitRequest{Target: target, TimeoutMs: ms})
	late := types.CodeOf(err) == types.ErrTimeout && ctx.Err() == nil
	if err != nil && !late {
		return out, err
	}
	if late || r.Suspended {
		if !late {
			target = r.UUID.String() // the name may be another's by now
		}
		d, err := call(ctx, p.Processes, ipc.GetProcDetail, ipc.TargetRequest{Target: target})
		if err != nil {
			return out, err
		}
		state := "running"
		if r.Suspended || d.State == "suspended" {
			state = "suspended"
		}
		return outcome{PID: uint64(d.PID), UUID: d.UUID.String(), State: state, Waits: d.Wait, Steps: d.Step, Tokens: d.TokensUsed, CostUSD: d.CostUSD, ElapsedMs: d.ElapsedMs}, nil
	}
	code := int(r.Exit.Code)
	out = outcome{PID: uint64(r.PID), UUID: r.UUID.String(), State: "ended", ExitCode: &code, Reason: r.Exit.Reason, Steps: r.Steps, Tokens: r.TokensUsed, CostUSD: r.CostUSD, ElapsedMs: r.ElapsedMs}
	out.Result, out.More = cut(r.Result, maxResult)
	if r.Exit.Err != nil {
		out.Error = kernelmcp.ErrorText(r.Exit.Err)
	}
	return out, nil
}
