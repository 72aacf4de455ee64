package mcpserve

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

// installTools adds the tools that change nothing.
func (p looker) installTools(s *mcp.Server) {
	add(s, &mcp.Tool{Name: "ps", Title: "List agents", Annotations: looks(),
		Description: "List processes: those that run or are suspended, and with all also those that have ended."}, nil, p.ps)
	add(s, &mcp.Tool{Name: "wait", Title: "Wait for an agent", Annotations: looks(),
		Description: `Wait for a process to end, at most wait_seconds, and return its result. If state is "running" then, it works on: call wait again, or do something else.`}, nil, p.wait)
	add(s, &mcp.Tool{Name: "log", Title: "Read an agent's log", Annotations: looks(),
		Description: "Read what a process thinks, says and reads. Without since, the last lines; with it, those behind that one: pass next to go on."},
		map[string][]any{"category": {"think", "tool", "output", "warning"}}, p.log)
	add(s, &mcp.Tool{Name: "result", Title: "Read an agent's result", Annotations: looks(),
		Description: "Read how a process stands: its state, its plan, and its result if it has ended. It does not wait."}, nil, p.result)
	add(s, &mcp.Tool{Name: "diff", Title: "See what an agent changed", Annotations: looks(),
		Description: "Show what a process has changed in its files: from its start to now, or between the ends of two of its steps."}, nil, p.diff)
	add(s, &mcp.Tool{Name: "cost", Title: "See what agents cost", Annotations: looks(),
		Description: "Add up the tokens and dollars that agents have used, over all that were ever run or over one and its descendants."},
		map[string][]any{"by": {"model", "agent", "day", "process"}}, p.cost)
}

type psIn struct {
	All   bool `json:"all,omitempty" jsonschema:"also those that have ended, the latest first"`
	Limit int  `json:"limit,omitempty" jsonschema:"at most so many of those that have ended; default 50"`
}

type psOut struct {
	Processes []procLine `json:"processes"`
	Hidden    int        `json:"hidden,omitempty" jsonschema:"ended ones beyond the limit"`
}

// procLine is a process in a list.
type procLine struct {
	PID       uint64       `json:"pid"`
	UUID      string       `json:"uuid"`
	PPID      uint64       `json:"ppid,omitempty"`
	Name      string       `json:"name,omitempty"`
	State     string       `json:"state" jsonschema:"created, running, suspended, zombie, dead or archived"`
	Waits     string       `json:"waits,omitempty" jsonschema:"what it waits for"`
	Suspect   bool         `json:"suspect,omitempty" jsonschema:"it makes no progress"`
	Intent    string       `json:"intent"`
	Directory string       `json:"directory,omitempty"`
	Agent     string       `json:"agent,omitempty"`
	Kind      string       `json:"kind,omitempty"`
	Labels    types.Labels `json:"labels,omitempty" jsonschema:"what a person has marked it with"`
	Model     string       `json:"model,omitempty"`
	Step      int          `json:"step"`
	MaxSteps  int          `json:"max_steps,omitempty"`
	Failed    int          `json:"failed_calls,omitempty" jsonschema:"calls that failed, commands with an exit code among them"`
	Tokens    int          `json:"tokens"`
	CostUSD   float64      `json:"cost_usd,omitempty"`
	ElapsedMs int64        `json:"elapsed_ms"`
	ExitCode  *int         `json:"exit_code,omitempty"`
	Reason    string       `json:"reason,omitempty" jsonschema:"why it ended"`
}

func lineOf(q *ipc.Proc) procLine {
	l := procLine{PID: uint64(q.PID), UUID: q.UUID.String(), PPID: uint64(q.PPID), Name: q.Name, State: q.State, Waits: q.Wait, Suspect: !q.Suspect.IsZero(),
		Intent: short(q.Intent, maxIntent), Directory: q.WorkDir, Agent: q.Agent, Labels: q.Labels, Kind: q.Kind, Model: strings.Trim(q.Provider+"/"+q.Model, "/"), Step: q.Step,
		MaxSteps: q.MaxSteps, Failed: q.FailedCalls, Tokens: q.TokensUsed, CostUSD: q.CostUSD, ElapsedMs: q.ElapsedMs}
	if q.Exit != nil {
		code := int(q.Exit.Code)
		l.ExitCode, l.Reason = &code, q.Exit.Reason
	}
	return l
}

func (p looker) ps(ctx context.Context, in psIn) (out psOut, _ string, err error) {
	if in.Limit < 0 {
		return out, "", types.Errorf(types.ErrInvalid, "ps", "", "limit %d is negative", in.Limit)
	}
	r, err := call(ctx, p.Processes, ipc.ListProcs, ipc.ListRequest{All: in.All, Limit: cmp.Or(in.Limit, 50)})
	if err != nil {
		return out, "", err
	}
	out = psOut{Processes: make([]procLine, 0, len(r.Procs)), Hidden: r.Hidden}
	for i := range r.Procs {
		out.Processes = append(out.Processes, lineOf(&r.Procs[i]))
	}
	return out, "", nil
}

type resultIn struct {
	Process process `json:"process"`
}

type resultOut struct {
	procLine
	Plan   string `json:"plan,omitempty"`
	Result string `json:"result,omitempty"`
	More   int    `json:"more_bytes,omitempty" jsonschema:"so many bytes of the result are not shown; the resource rnix://proc/UUID/result has all of it"`
}

func (p looker) result(ctx context.Context, in resultIn) (out resultOut, words string, err error) {
	d, err := call(ctx, p.Processes, ipc.GetProcDetail, ipc.TargetRequest{Target: string(in.Process)})
	if err != nil {
		return out, "", err
	}
	out = resultOut{procLine: lineOf(&d.Proc), Plan: short(d.Plan, maxResult)}
	out.Result, out.More = cut(d.Result, maxResult)
	return out, "", nil
}

type diffIn struct {
	Process process  `json:"process"`
	From    int      `json:"from,omitempty" jsonschema:"from the end of this step; default 0, before the first one"`
	To      *int     `json:"to,omitempty" jsonschema:"to the end of this one; default: the files as they are now"`
	Paths   []string `json:"paths,omitempty" jsonschema:"only these files and directories"`
	Stat    bool     `json:"stat,omitempty" jsonschema:"only which files, without the text"`
}

type diffOut struct {
	PID   uint64     `json:"pid"`
	UUID  string     `json:"uuid"`
	Files []diffFile `json:"files"`
	Diff  string     `json:"diff,omitempty"`
	More  int64      `json:"more_bytes,omitempty" jsonschema:"so many bytes of the text are not shown; name paths"`
	// Autorun is a line for each file.
	Autorun []string `json:"autorun,omitempty" jsonschema:"changed hooks, settings and files that git, editors, shells or agents run or obey unasked: tell the user"`
}

type diffFile struct {
	Path    string `json:"path"`
	Status  string `json:"status" jsonschema:"A added, D deleted, M changed, T another type of file"`
	Added   int    `json:"added,omitempty"`
	Deleted int    `json:"deleted,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
}

func (p looker) diff(ctx context.Context, in diffIn) (out diffOut, words string, err error) {
	r, err := call(ctx, p.Processes, ipc.DiffFiles, ipc.DiffRequest{Target: string(in.Process), From: in.From, To: in.To, Paths: in.Paths, Stat: in.Stat, MaxBytes: maxDiff})
	if err != nil {
		return out, "", err
	}
	out = diffOut{PID: uint64(r.PID), UUID: r.UUID.String(), Files: make([]diffFile, 0, len(r.Files)), More: r.Missing}
	out.Diff = strings.ToValidUTF8(string(r.Text()), "\uFFFD")
	for _, f := range r.Files {
		out.Files = append(out.Files, diffFile(f))
	}
	for i := range r.Autorun {
		out.Autorun = append(out.Autorun, debug.Sanitize(r.Autorun[i].Line()))
	}
	switch {
	case len(out.Files) == 0:
		words = "nothing has changed"
	case out.Diff != "":
		words = debug.Sanitize(out.Diff)
		if out.More > 0 {
			words += omitted(int(out.More), "name paths to see them")
		}
	}
	if len(out.Autorun) > 0 && words != "" {
		words += "\nRun or obeyed unasked by other programs, and changed since it began:\n" + strings.Join(out.Autorun, "\n") + "\n"
	}
	return out, words, nil
}

type costIn struct {
	By      string  `json:"by,omitempty" jsonschema:"a line for each; default model"`
	Days    int     `json:"days,omitempty" jsonschema:"only the last so many days, of UTC; default: ever"`
	Process process `json:"process,omitempty"`
}

type costOut struct {
	Lines []costLine `json:"lines"`
	Total costLine   `json:"total"`
}

type costLine struct {
	Key       string   `json:"key,omitempty"`
	PID       uint64   `json:"pid,omitempty"`
	Intent    string   `json:"intent,omitempty"`
	Processes int      `json:"processes,omitempty"`
	Answers   int      `json:"answers"`
	Input     int      `json:"input_tokens"`
	Output    int      `json:"output_tokens"`
	Tokens    int      `json:"tokens"`
	CostUSD   *float64 `json:"cost_usd,omitempty" jsonschema:"missing: no price is known"`
	Unpriced  int      `json:"unpriced_tokens,omitempty" jsonschema:"tokens without a known price, which are not in cost_usd"`
	Estimated bool     `json:"estimated,omitempty" jsonschema:"some of the tokens were estimated"`
}

func (p looker) cost(ctx context.Context, in costIn) (out costOut, _ string, err error) {
	req := ipc.CostRequest{By: cmp.Or(in.By, "model"), Under: string(in.Process)}
	if in.Days < 0 || in.Days > 100_000 {
		return out, "", types.Errorf(types.ErrInvalid, "cost", "", "days %d is no number of days back", in.Days)
	}
	if in.Days > 0 {
		req.Since = time.Now().AddDate(0, 0, 1-in.Days).UTC().Truncate(24 * time.Hour)
	}
	r, err := call(ctx, p.Processes, ipc.ShowCost, req)
	if err != nil {
		return out, "", err
	}
	line := func(l *ipc.CostLine) costLine {
		return costLine{Key: l.Key, PID: uint64(l.PID), Intent: short(l.Intent, maxIntent), Processes: l.Processes, Answers: l.Answers, Input: l.Input, Output: l.Output,
			Tokens: l.Tokens, CostUSD: l.CostUSD, Unpriced: l.Unpriced, Estimated: l.Estimated}
	}
	out = costOut{Lines: make([]costLine, 0, len(r.Lines)), Total: line(&r.Total)}
	for i := range r.Lines {
		out.Lines = append(out.Lines, line(&r.Lines[i]))
	}
	return out, "", nil
}

// seconds checks a time that a client gives and returns it in milliseconds.
func seconds(name string, s float64, def, most time.Duration) (int64, error) {
	d := time.Duration(s * float64(time.Second))
	switch {
	case s == 0:
		return def.Milliseconds(), nil
	case !(s > 0) || s > most.Seconds():
		return 0, types.Errorf(types.ErrInvalid, "", "", "%s is %v; give a time from 0.001 to %d", name, s, int(most.Seconds()))
	}
	return max(d.Milliseconds(), 1), nil
}

// endOf says in a word how a wait went.
func endOf(o *outcome) string {
	switch o.State {
	case "ended":
		words := debug.Sanitize(o.Result)
		if o.More > 0 {
			words += omitted(o.More, "resource rnix://proc/"+o.UUID+"/result")
		}
		if *o.ExitCode == 0 && words != "" {
			return words
		}
		return fmt.Sprintf("[ended with exit code %d: %s]\n%s", *o.ExitCode, o.Reason, words)
	case "suspended":
		return fmt.Sprintf("[PID %d is suspended: %s; resume it with the tool resume]", o.PID, o.Waits)
	}
	return fmt.Sprintf("[PID %d works on, at step %d; call wait again]", o.PID, o.Steps)
}
