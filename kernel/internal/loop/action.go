// Package loop is the reasoning loop of a process: prompt, answer, actions, record, one step after
// the other. It owns the step number, the tokens and the action in hand, and is exclusive to the
// goroutine of its process. What it needs from the kernel is the Host interface; it knows no process
// table, no device and no file.
package loop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// Kind is what an action is. Part of the on-disk format (StepRecord.Action).
type Kind string

// The kinds of the specification, 000 §5.1.
const (
	ToolCall   Kind = "tool_call"
	Plan       Kind = "plan"
	Spawn      Kind = "spawn"
	Complete   Kind = "complete"
	Specialize Kind = "specialize"
	Replan     Kind = "replan"
	Text       Kind = "text"
)

// The kinds beyond it: what a process does with others.
const (
	Wait   Kind = "wait"
	Send   Kind = "send"
	Recv   Kind = "recv"
	Signal Kind = "signal"
	Ps     Kind = "ps"
)

// Ask is a question to a person. It does nothing outside of the process.
const Ask Kind = "ask"

// Kinds are the kernel's own actions in the order in which they are offered.
var Kinds = []Kind{Plan, Replan, Specialize, Spawn, Wait, Send, Recv, Signal, Ps, Ask, Complete}

// Action is one thing that the model wants.
type Action struct {
	Kind Kind
	Call rnixctx.ToolCall
	Tool vfs.Tool // for ToolCall; the zero value for the kernel's own actions
	// Problem says why the action cannot be run; it is given back to the model as an error.
	Problem *types.SyscallError
	// Settled is how a call ended that is not run, because an earlier run of the process began it. Closed
	// says that its result is recorded already.
	Settled *Outcome
	Closed  bool
	// Earlier is the call of that run, if it is begun again: its files are put back first if Undo says so.
	Earlier *recovery.Call
	Undo    bool
	// Attachments are the images and documents of its answer, which has a line for each; set by Host.Run.
	Attachments []rnixctx.Attachment
	// Child is the UUID of the process that a Spawn starts, settled before it is announced.
	Child types.UUID
	// Ask is what an earlier run, or this one, has asked a person about the call, and Reply the answer; nil = none.
	Ask   *step.Ask
	Reply *step.Answered
	// Edited is the input that the model asked for, if a person has changed it; else it is empty.
	Edited json.RawMessage

	fields map[string]json.RawMessage // of the input; nil if it is not an object
}

// independent reports whether the action may run beside others.
func (a *Action) independent() bool {
	return a.Problem != nil || a.Kind == Spawn || a.Kind == Ask || a.Kind == ToolCall && a.Tool.Independent
}

// Meta are the kernel's own actions as they are offered to a model, each only to processes that may use it.
var Meta = map[Kind]ToolSpec{
	Complete: {"complete", "Finish the task. Call this exactly once, when the work is done and checked, or when it cannot be done. The result is what the person who asked will read.",
		json.RawMessage(`{"type":"object","properties":{"result":{"type":"string","description":"what was done and found, or why it could not be done"}},"required":["result"],"additionalProperties":false}`)},
	Plan: {"plan", "Write down the steps that you intend to take. Use it once at the start of work that needs more than a few steps.",
		json.RawMessage(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"string"},"minItems":1}},"required":["steps"],"additionalProperties":false}`)},
	Replan: {"replan", "Replace the plan when what you found makes it wrong.",
		json.RawMessage(`{"type":"object","properties":{"reason":{"type":"string"},"steps":{"type":"array","items":{"type":"string"}}},"required":["reason"],"additionalProperties":false}`)},
	Specialize: {"specialize", "Load the instructions of a skill.",
		json.RawMessage(`{"type":"object","properties":{"skill":{"type":"string"}},"required":["skill"],"additionalProperties":false}`)},
	Spawn: {"spawn", "Start another agent with its own task and wait for its result; with background it runs beside you, and you get a message when it ends. It sees none of this conversation, has at most your rights and budget, and works in the same directory, unless worktree is set. Several calls in one answer run side by side.",
		json.RawMessage(`{"type":"object","properties":{"intent":{"type":"string","description":"the whole task"},"agent":{"type":"string","description":"which agent; empty for the default one"},"name":{"type":"string","description":"a name for it"},"max_steps":{"type":"integer","minimum":1},"budget":{"type":"integer","minimum":1,"description":"tokens"},"allow":{"type":"array","items":{"type":"string"},"description":"the only paths that it may open, such as /dev/fs"},"deny":{"type":"array","items":{"type":"string"},"description":"paths that it may not open"},"background":{"type":"boolean"},"worktree":{"type":"boolean","description":"it works in its own git work tree and on its own branch, which begins at the last commit of yours; the answer names both"}},"required":["intent"],"additionalProperties":false}`)},
	Wait: {"wait", "Wait until agents that you have started in the background have ended, and get their results.",
		json.RawMessage(`{"type":"object","properties":{"pids":{"type":"array","items":{"type":"integer"},"description":"which; all that still run if it is left out"},"any":{"type":"boolean","description":"until one of them has ended"},"timeout_s":{"type":"number","exclusiveMinimum":0,"description":"seconds"}},"additionalProperties":false}`)},
	Send: {"send", "Send a message to an agent of your family: your parent, your children, their children. It gets it before its next step, as data.",
		json.RawMessage(`{"type":"object","properties":{"pid":{"type":"integer"},"text":{"type":"string"}},"required":["pid","text"],"additionalProperties":false}`)},
	Recv: {"recv", "Wait for a message. Without it you get messages too, before each step.",
		json.RawMessage(`{"type":"object","properties":{"timeout_s":{"type":"number","exclusiveMinimum":0,"description":"seconds; 60 if it is left out"}},"additionalProperties":false}`)},
	Signal: {"signal", "Send a signal to an agent that you or your children have started: TERM ends it before its next action, KILL at once, PAUSE holds it, RESUME continues it.",
		json.RawMessage(`{"type":"object","properties":{"pid":{"type":"integer"},"signal":{"type":"string","enum":["TERM","KILL","INT","PAUSE","RESUME"]},"tree":{"type":"boolean","description":"its descendants too"}},"required":["pid","signal"],"additionalProperties":false}`)},
	Ps: {"ps", "List yourself and the agents below you: what they do and what they wait for.",
		json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
	Ask: {"ask", "Ask the user a question and wait for the answer, which may take hours. Use it only for what you cannot find out, where a wrong guess would cost more than the wait; else decide, and say so in your result. Offer choices where there are some: the user may choose or write something else.",
		json.RawMessage(`{"type":"object","properties":{"question":{"type":"string","description":"all that the user needs to know to answer"},"choices":{"type":"array","items":{"type":"string"},"maxItems":12,"description":"short answers, a line each"},"default":{"type":"string","description":"what you would do without an answer"}},"required":["question"],"additionalProperties":false}`)},
}

// Parse turns an answer into actions, in order. An answer without calls and with text is one Text
// action; one with neither is none.
//
// Calls whose name is unknown or whose arguments are no JSON object come back with a Problem. Ids that
// are empty or repeated are made unique in resp itself, so that each call can have exactly one answer.
func Parse(resp *Response, tools map[string]vfs.Tool, meta map[string]Kind) []Action {
	if len(resp.ToolCalls) == 0 {
		if strings.TrimSpace(resp.Content) == "" {
			return nil
		}
		return []Action{{Kind: Text}}
	}
	uniqueIDs(resp.ToolCalls)
	out := make([]Action, len(resp.ToolCalls))
	for i := range resp.ToolCalls {
		c := &resp.ToolCalls[i]
		if len(c.Input) == 0 || string(c.Input) == "null" {
			c.Input = json.RawMessage("{}")
		}
		a := Action{Kind: ToolCall, Call: *c}
		if k, ok := meta[c.Name]; ok {
			a.Kind = k
		} else if t, ok := tools[c.Name]; ok {
			a.Tool = t
		} else {
			a.Problem = types.Errorf(types.ErrNotFound, "Tool", c.Name, "there is no such tool; the tools are: %s", names(tools, meta))
		}
		if d := resp.done(c.ID); d != nil {
			a.ranElsewhere(d)
			out[i] = a
			continue
		}
		if resp.StopReason == stopRan {
			a.ranUnseen()
			out[i] = a
			continue
		}
		if c.ParseError != "" {
			a.Problem = types.Errorf(types.ErrInvalid, "Tool", c.Name, "the arguments are not valid JSON (%s); call again with a JSON object", c.ParseError)
		} else if a.fields = object(c.Input); a.Problem == nil && a.fields == nil {
			a.Problem = types.Errorf(types.ErrInvalid, "Tool", c.Name, "the arguments must be a JSON object, not %s", rnixctx.Elide(string(c.Input), 80))
		}
		out[i] = a
	}
	return out
}

// object returns the fields of a JSON object, or nil if b is none.
func object(b json.RawMessage) (fields map[string]json.RawMessage) {
	if json.Unmarshal(b, &fields) != nil {
		return nil
	}
	return fields
}

// uniqueIDs replaces empty and repeated ids; the first call of an id keeps it.
func uniqueIDs(calls []rnixctx.ToolCall) {
	owner := map[string]int{"": -1} // which call has an id; nobody has the empty one
	for i := range calls {
		if _, taken := owner[calls[i].ID]; !taken {
			owner[calls[i].ID] = i
		}
	}
	for i := range calls {
		if owner[calls[i].ID] == i {
			continue
		}
		id := ""
		for n, taken := i+1, true; taken; n++ {
			id = fmt.Sprintf("call-%d", n)
			_, taken = owner[id]
		}
		calls[i].ID, owner[id] = id, i
	}
}

func names(tools map[string]vfs.Tool, meta map[string]Kind) string {
	var all []string
	for n := range tools {
		all = append(all, n)
	}
	for n := range meta {
		all = append(all, n)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// result returns what a Complete action ends the process with: its result, as JSON if it is not a
// string, or what the model said beside the call if there is none.
func (a *Action) result(said string) string {
	if s := a.Field("result"); s != "" {
		return s
	}
	switch raw := strings.TrimSpace(string(a.fields["result"])); raw {
	case "", "null", `""`:
		return said
	default:
		return raw
	}
}

// Field returns a field of the input, or "" if it is missing or no string.
func (a *Action) Field(name string) string {
	raw := a.fields[name]
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if text := raw[1 : len(raw)-1]; bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text) // as it stands: raw is a value that was read before
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
