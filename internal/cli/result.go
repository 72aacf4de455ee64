package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// runData is the data of the final object. Part of the wire format of --json.
type runData struct {
	PID        types.PID  `json:"pid"`
	UUID       types.UUID `json:"uuid"`
	Result     string     `json:"result"`
	TokensUsed int        `json:"tokens_used"`
	Estimated  bool       `json:"estimated,omitempty"`
	CostUSD    float64    `json:"cost_usd,omitempty"`
	Unpriced   int        `json:"unpriced_tokens,omitempty"` // of an unknown price; they are not in CostUSD
	// With those of its children and theirs; 0 = it has none.
	FamilyTokens int     `json:"family_tokens_used,omitempty"`
	FamilyUSD    float64 `json:"family_cost_usd,omitempty"`
	// The tokens of FamilyTokens of an unknown price, and the failed calls of all of them.
	FamilyUnpriced int    `json:"family_unpriced_tokens,omitempty"`
	FamilyFailed   int    `json:"family_failed_calls,omitempty"`
	ElapsedMs      int64  `json:"elapsed_ms"`
	Steps          int    `json:"steps"`
	FailedCalls    int    `json:"failed_calls,omitempty"` // of its steps
	ExitCode       int    `json:"exit_code"`              // of the process
	ExitReason     string `json:"exit_reason,omitempty"`
	Suspended      bool   `json:"suspended,omitempty"`
	types.Denials
	MCPDown  []string `json:"mcp_down,omitempty"` // its MCP servers that could not be reached, each with the reason
	Warnings []string `json:"warnings,omitempty"`
	// Structured is the result of an agent that was asked for one of an --output-schema.
	Structured json.RawMessage `json:"structured_output,omitempty"`

	Worktree *ipc.Worktree `json:"worktree,omitempty"`
}

// runAnswer is the final object of --json.
type runAnswer struct {
	OK    bool             `json:"ok"`
	Error *types.WireError `json:"error,omitempty"`
	Mend  string           `json:"mend,omitempty"` // the command that lets it go on
	Data  *runData         `json:"data,omitempty"`
}

// structured returns the result of an agent that has ended well and was asked for JSON; nil = it was not.
func structured(o *output, r *ipc.WaitResponse, err error) json.RawMessage {
	if !o.exact && !r.Schema || err != nil || !json.Valid([]byte(r.Result)) {
		return nil
	}
	return json.RawMessage(r.Result)
}

// endError returns why an agent did not complete, as an error with a code; nil if it did.
func endError(e types.ExitStatus) error {
	code := types.ErrInternal
	switch e.Code {
	case types.ExitOK:
		return nil
	case types.ExitBudget, types.ExitNoProgress:
		code = types.ErrExhausted
	case types.ExitLostOwnership:
		code = types.ErrConflict
	case types.ExitCancelled:
		code = types.ErrCancelled
	case types.ExitBlocked, types.ExitRefused:
		code = types.ErrPermission
	}
	if e.MaxSteps() {
		code = types.ErrExhausted
	}
	out := types.Errorf(code, "", "", "%s", e.Reason)
	var s *types.SyscallError
	if errors.As(e.Err, &s) && e.Code == types.ExitError {
		out.Code, out.Syscall, out.Device = s.Code, s.Syscall, s.Device
		out.Err = errors.New(strings.TrimPrefix(e.Reason, prefixOf(s)))
	}
	return out
}

// prefixOf is what Error puts before the cause of s, which a reason may already begin with.
func prefixOf(s *types.SyscallError) string {
	p := strings.TrimSpace(s.Syscall + " " + s.Device)
	if p == "" {
		return ""
	}
	return p + ": "
}

// endName is our name of an end in stream-json.
func endName(e types.ExitStatus, interrupted bool) string {
	switch {
	case e.Code == types.ExitOK:
		return "success"
	case interrupted:
		return "interrupted"
	case e.MaxSteps():
		return "error_max_steps"
	case timedOut(e):
		return "error_timeout"
	}
	switch e.Code {
	case types.ExitBudget:
		return "error_budget"
	case types.ExitCancelled:
		return "cancelled"
	case types.ExitBlocked:
		return "blocked"
	case types.ExitNoProgress:
		return "error_no_progress"
	case types.ExitLostOwnership:
		return "lost_ownership"
	case types.ExitRefused:
		return "refused"
	}
	return "error"
}

// showEnd shows the result of a process that has ended and returns the exit code for it. interrupted
// says that we have asked it to stop.
func showEnd(out *output, r *ipc.WaitResponse, tree *ipc.Worktree, warnings []string, interrupted bool) error {
	code := processExit(r.Exit)
	if interrupted && code != ExitOK {
		code = ExitInterrupted
	}
	err := endError(r.Exit)
	switch out.format {
	case asJSON:
		data := &runData{PID: r.PID, UUID: r.UUID, Result: r.Result,
			TokensUsed: r.TokensUsed, Estimated: r.Estimated, CostUSD: r.CostUSD, Unpriced: r.Unpriced, FamilyTokens: r.FamilyTokens, FamilyUSD: r.FamilyUSD, FamilyUnpriced: r.FamilyUnpriced, FamilyFailed: r.FamilyFailed, ElapsedMs: r.ElapsedMs, Steps: r.Steps, FailedCalls: r.FailedCalls,
			ExitCode: r.Exit.Code, ExitReason: r.Exit.Reason, Denials: r.Denials, MCPDown: r.MCPDown, Warnings: warnings, Worktree: tree}
		data.Structured = structured(out, r, err)
		out.object(&runAnswer{OK: err == nil, Error: types.ToWire(err), Data: data})
	case asStream:
		last := linesOf(out).resultOf(r, endName(r.Exit, interrupted), err)
		last.Worktree, last.Structured = tree, structured(out, r, err)
		linesOf(out).end(last)
	default:
		if !out.exact {
			out.result(r.Result)
		} else if err == nil {
			out.raw([]byte(strings.TrimSpace(r.Result) + "\n"))
		}
		if out.talks() {
			out.say(exitLine(out, r))
			if len(r.UnpricedModels) > 0 {
				out.say("  " + oneLine(price.Missing(r.UnpricedModels)))
			}
		} else if err != nil {
			out.say(out.err.paint(red, out.prog+": ") + "PID " + r.PID.String() + " " + exitText(&r.Exit))
		}
		if mend := exitMend(r); mend != "" {
			out.say("  " + mend)
		}
	}
	return leave(code)
}

// exitMend says how a process goes on that did not complete, or what to do about its end.
func exitMend(r *ipc.WaitResponse) string {
	e := &r.Exit
	switch {
	case e.MaxSteps():
		return fmt.Sprintf("resume it with: rnix resume %d --max-steps %d (so many more steps; 0 = no limit)", r.PID, max(r.Steps, 1))
	case e.Code == types.ExitBudget:
		return fmt.Sprintf("resume it with: rnix resume %d --budget %d (so many more tokens; 0 = unlimited)", r.PID, max(r.TokensUsed, 1))
	case e.Code == types.ExitRefused && unasked(r):
		return lastRefused(r) + "have it wait for your answer with: rnix resume " + r.PID.String() + " --asks wait (or begin with: rnix run -d, or --asks wait)"
	case e.Code == types.ExitRefused:
		return lastRefused(r) + "when that may be done, resume it with: rnix resume " + r.PID.String()
	case e.Code == types.ExitCancelled:
		return fmt.Sprintf("resume it where it stopped with: rnix resume %d", r.PID)
	case types.CodeOf(e.Err) == types.ErrNotFound:
		return "name another model with: rnix resume " + r.PID.String() + " --model MODEL; `rnix providers` shows the default models"
	case types.CodeOf(e.Err) == types.ErrAuth:
		return "which key is used, and from where, says: rnix providers"
	case unasked(r):
		return lastRefused(r) + "to be asked about such calls, run it with -d or --asks wait"
	}
	return ""
}

// unasked reports whether a call was refused to a process since no person was there to be asked.
func unasked(r *ipc.WaitResponse) bool {
	return slices.ContainsFunc(r.Denials.Denials, func(d types.Denial) bool { return d.Unasked })
}

// lastRefused says which call was refused to a process last, if that is known.
func lastRefused(r *ipc.WaitResponse) string {
	if r.Denied == 0 || r.Denied > len(r.Denials.Denials) {
		return ""
	}
	d := &r.Denials.Denials[r.Denied-1]
	return "refused: " + cut(oneLine(d.Text), 200) + " (" + cut(oneLine(d.Why), 200) + "); "
}

// downServers names the MCP servers that cannot be reached.
func downServers(down []string) string {
	names := make([]string, len(down))
	for i, text := range down {
		names[i], _, _ = strings.Cut(oneLine(text), ":")
	}
	if len(names) == 1 {
		return "the MCP server " + names[0]
	}
	return "the MCP servers " + strings.Join(names, ", ")
}

// exitLine is the last line of a run: [kernel] PID 3 exited(0): completed | 3 steps | 1,234 tokens | 2.1s
func exitLine(out *output, r *ipc.WaitResponse) string {
	st := green
	if r.Exit.Code != types.ExitOK {
		st = red
	}
	parts := []string{"[kernel] PID " + r.PID.String() + " " + out.err.paint(st, exitText(&r.Exit)), plural(r.Steps, "step", "steps"),
		tokens(r.TokensUsed, r.Estimated) + " tokens", duration(r.ElapsedMs)}
	if r.CostUSD > 0 || r.Unpriced > 0 {
		parts = append(parts, strings.TrimPrefix(price.Behind(r.CostUSD, r.TokensUsed, r.Unpriced), ", "))
	}
	if r.FailedCalls > 0 {
		parts = append(parts, out.err.paint(yellow, failedCalls(r.FailedCalls)))
	}
	if r.Denied > 0 {
		parts = append(parts, plural(r.Denied, "call", "calls")+" refused")
	}
	if len(r.MCPDown) > 0 {
		parts = append(parts, "without "+downServers(r.MCPDown))
	}
	if r.FamilyTokens > r.TokensUsed {
		with := "with its children " + number(r.FamilyTokens) + " tokens" + price.Behind(r.FamilyUSD, r.FamilyTokens, r.FamilyUnpriced)
		if r.FamilyFailed > r.FailedCalls {
			with += ", " + failedCalls(r.FamilyFailed)
		}
		parts = append(parts, with)
	}
	return strings.Join(parts, " | ")
}
