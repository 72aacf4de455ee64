package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
	"rnix/types"
)

// stepsFlags are what of the steps is shown.
type stepsFlags struct {
	messages bool
	last     int
	find     string
	raw      int
}

func stepsCmd(a *app) *cobra.Command {
	var f stepsFlags
	c := &cobra.Command{
		Use:   "steps PROCESS [STEP]",
		Short: "show the steps of a process, or one of them in detail",
		Long: `Steps lists the recorded steps of a process, alive or dead; with a number, that one: what the model
was asked, what it answered, each call with its input and result. --messages adds the whole conversation.
TIME is from the beginning of a step to the end of its last call. Recording it and keeping its files comes on
top; rnix trace counts that, too.

--last shows the last ones only, --find those that have a text in their line, answer, calls, results or
errors; small letters find capital ones too.

--raw N shows the request of step N as it goes to the vendor, as JSON, with the answer as it is on record.
The record has what was said, not the bytes that were sent: the driver makes the request anew, and notes
say in what it may differ. Secrets are concealed.`,
		Example:           examples(`rnix steps 3`, `rnix steps 3 2`, `rnix steps 3 2 --messages`, `rnix steps 3 --last 20`, `rnix steps 3 --find "no such file"`, `rnix steps --raw 2 3 | jq .request`, `rnix steps --json night | jq .summary`),
		Annotations:       exits("0 1 2 10 12"),
		Args:              argsOf(1, 2, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			n := 0
			if len(args) == 2 {
				var err error
				if n, err = strconv.Atoi(args[1]); err != nil || n < 1 {
					return usagef("", "step %q is not a number of at least 1", args[1])
				}
			}
			switch last := c.Flags().Changed("last"); {
			case n == 0 && f.messages:
				return usagef("name one, as in: rnix steps "+args[0]+" 1 --messages", "--messages is for one step")
			case n > 0 && (last || f.find != ""):
				return usagef("leave the number out", "--last and --find are for the list of steps")
			case last && f.last < 1:
				return usagef("", "--last is %d, and has to be at least 1", f.last)
			}
			if c.Flags().Changed("raw") && (f.raw < 1 || n > 0 || f.messages || f.find != "" || f.last > 0) {
				return usagef("", "--raw is for one step, by its number, and goes with no number behind the process, --messages, --last or --find")
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			if f.raw > 0 {
				return rawStep(c.Context(), client, a.out, ipc.RawStepRequest{ProjectRequest: a.project(false), Target: args[0], Step: f.raw})
			}
			if n > 0 {
				return oneStep(c.Context(), client, a.out, ipc.StepRequest{Target: args[0], Step: n, Alone: !f.messages}, f.messages)
			}
			return steps(c.Context(), client, a.out, args[0], f)
		},
	}
	c.Flags().BoolVarP(&f.messages, "messages", "m", false, "the conversation of the step")
	c.Flags().IntVarP(&f.last, "last", "n", 0, "only the last so many steps")
	c.Flags().IntVar(&f.raw, "raw", 0, "the request and the answer of the step with this number, as JSON, e.g. 2")
	c.Flags().StringVar(&f.find, "find", "", "only steps that have this text")
	return c
}

// eachStep calls yield for the steps that f picks, in their order, a page at a time, and returns what the last page says, with the
// interrupted calls of all.
func eachStep(ctx context.Context, c *ipc.Client, target string, f stepsFlags, bare bool, yield func(*ipc.StepRecord)) (ipc.ListStepsResponse, error) {
	const page = 500 // steps
	req := ipc.StepsRequest{Target: target, Limit: page, Bare: bare, Find: f.find}
	if f.last > 0 {
		after, err := beforeLast(ctx, c, req, f.last)
		if err != nil {
			return ipc.ListStepsResponse{}, err
		}
		req.After = after
	}
	var open []ipc.CallIntent
	for {
		r, err := ipc.Call(ctx, c, ipc.ListSteps, req)
		if err != nil {
			return r, err
		}
		for i := range r.Steps {
			yield(&r.Steps[i])
		}
		open = append(open, r.Interrupted...)
		if r.Next <= req.After { // 0, or a daemon that goes back
			r.Interrupted = open
			return r, nil
		}
		req.After = r.Next
	}
}

// beforeLast returns the number behind which the last n of the steps stand that req picks.
func beforeLast(ctx context.Context, c *ipc.Client, req ipc.StepsRequest, n int) (int, error) {
	req.Last, req.Bare = true, true
	most := req.Limit
	for {
		req.Limit = min(n, most)
		r, err := ipc.Call(ctx, c, ipc.ListSteps, req)
		if err != nil {
			return 0, err
		}
		if n -= len(r.Steps); n <= 0 {
			return r.Steps[0].StepNumber - 1, nil
		}
		if r.Prev == 0 || req.Before > 0 && r.Prev >= req.Before {
			return 0, nil
		}
		req.Before = r.Prev
	}
}

// steps lists the steps of a process.
func steps(ctx context.Context, c *ipc.Client, out *output, target string, f stepsFlags) error {
	var rows [][]cell
	r, err := eachStep(ctx, c, target, f, !out.json(), func(s *ipc.StepRecord) {
		if out.json() {
			out.object(s)
			return
		}
		summary := cell{oneLine(s.Summary), plain}
		if s.Error != "" || s.ToolError != "" {
			summary.st = red
		}
		rows = append(rows, []cell{text(strconv.Itoa(s.StepNumber)), text(oneLine(s.Action)), text(tokens(s.TokensUsed, s.Estimated)), text(debug.Duration(s.Duration)), text(modelName(s.Provider, s.Model)), summary})
	})
	if err != nil || out.json() {
		return err
	}
	if a := r.Open; a != nil && f.find == "" {
		rows = append(rows, []cell{text(strconv.Itoa(a.Step)), text("open"), text(tokens(a.TokensUsed, a.Estimated)), text(debug.Duration(a.ModelTime)), text(modelName(a.Provider, a.Model)),
			text("answered; what it asks for has not ended")})
	}
	switch {
	case len(rows) > 0:
		out.table([]column{{name: "STEP", right: true}, {name: "ACTION"}, {name: "TOKENS", right: true, drop: 2}, {name: "TIME", right: true}, {name: "MODEL", max: 28, drop: 1}, {name: "SUMMARY"}}, rows)
	case r.Last > 0:
		out.talk("no step of PID %d has %q", r.PID, f.find)
	default:
		out.talk("PID %d has no finished step yet", r.PID)
	}
	for i := range r.Interrupted {
		in := &r.Interrupted[i]
		out.warn(fmt.Sprintf("step %d: the call of %s was begun and has no result: whether it took effect is not known", in.Step, oneLine(in.Tool)))
	}
	if r.Damage != "" {
		out.warn(r.Damage)
	}
	return nil
}

// oneStep shows one step in detail.
func oneStep(ctx context.Context, c *ipc.Client, out *output, req ipc.StepRequest, messages bool) error {
	r, err := ipc.Call(ctx, c, ipc.GetStepDetail, req)
	if err != nil {
		return err
	}
	if out.json() {
		if !messages {
			r.Step.Messages = nil
		}
		out.object(&r)
		return nil
	}
	out.print(out.drawn(stepText(&r, messages, out)))
	return nil
}

// rawStep shows what a model was asked in a step.
func rawStep(ctx context.Context, c *ipc.Client, out *output, req ipc.RawStepRequest) error {
	r, err := ipc.Call(ctx, c, ipc.RawStep, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	text, err := json.MarshalIndent(&r, "", "  ")
	if err != nil {
		return err
	}
	out.print(debug.Sanitize(string(text)) + "\n")
	return nil
}

// stepText renders one step.
func stepText(r *ipc.StepDetail, messages bool, out *output) string {
	var b strings.Builder
	s := &r.Step
	head := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s %s\n", out.out.paint(dim, fmt.Sprintf("%-8s", name)), value)
		}
	}
	head("step", fmt.Sprintf("%d of PID %d (%s)", s.StepNumber, r.PID, r.UUID))
	head("began", s.Timestamp.Local().Format("2006-01-02 15:04:05.000"))
	head("took", fmt.Sprintf("%s, of which the model %s", debug.Duration(s.Duration), debug.Duration(s.ModelTime)))
	head("model", modelName(s.Provider, s.Model))
	head("tokens", tokenText(s))
	head("action", oneLine(s.Action))
	head("summary", oneLine(s.Summary))
	head("error", lines(s.Error))
	section(&b, out, "answer", s.RawResponse)
	for i := range s.ToolCalls {
		call := &s.ToolCalls[i]
		head := fmt.Sprintf("call %d: %s", i+1, oneLine(strings.TrimSpace(call.Name+" "+call.Path)))
		if call.Duration > 0 { // it was begun
			head += " (" + debug.Duration(call.Duration) + ")"
		}
		if call.Failure != "" {
			head += ", " + oneLine(call.Failure)
		}
		section(&b, out, head, call.Input)
		if call.Error != "" {
			section(&b, out, "error "+string(call.Code), call.Error)
		}
		section(&b, out, "result", call.Result)
	}
	if messages {
		for i := range s.Messages {
			m := &s.Messages[i]
			section(&b, out, fmt.Sprintf("message %d: %s", i+1, oneLine(string(m.Role))), m.Content)
			for _, call := range m.ToolCalls {
				section(&b, out, "calls "+oneLine(call.Name), string(call.Input))
			}
		}
	}
	return b.String()
}

func tokenText(s *ipc.StepRecord) string {
	t := tokens(s.TokensUsed, s.Estimated)
	if s.Input+s.Output > 0 {
		t += fmt.Sprintf(" (%s in, %s out", number(s.Input), number(s.Output))
		if s.CacheRead > 0 {
			t += ", " + number(s.CacheRead) + " from the cache"
		}
		t += ")"
	}
	if s.CostUSD > 0 {
		t += ", " + dollars(s.CostUSD)
	}
	return t
}

func section(b *strings.Builder, out *output, title, body string) {
	body = strings.TrimRight(debug.Sanitize(body), "\n")
	if body == "" && !strings.HasPrefix(title, "call") {
		return
	}
	fmt.Fprintf(b, "%s\n", out.out.paint(bold, title))
	if body != "" {
		b.WriteString("  " + strings.ReplaceAll(body, "\n", "\n  ") + "\n")
	}
}

// ended adds to an error about a path below /proc how to see what is left of a process that has ended.
func ended(err error, path string) error {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if name, _, _ := strings.Cut(rest, "/"); ok && types.CodeOf(err) == types.ErrNotFound {
		if pid, perr := types.ParsePID(name); perr == nil {
			return withMend(err, fmt.Sprintf("what one that has ended did is shown by: rnix steps %d, rnix strace %d", pid, pid))
		}
	}
	return err
}

// procPath replaces the name or UUID in /proc/<process>/... by the PID that the file system knows.
func procPath(ctx context.Context, c *ipc.Client, path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "/proc/")
	if !ok {
		return path, nil
	}
	name, file, more := strings.Cut(rest, "/")
	if _, err := types.ParsePID(name); err == nil || name == "" || name == "self" {
		return path, nil
	}
	p, err := ipc.Call(ctx, c, ipc.GetProcDetail, ipc.TargetRequest{Target: name})
	switch {
	case types.CodeOf(err) == types.ErrNotFound:
		return path, nil // not every name below /proc is a process
	case err != nil:
		return "", err
	}
	if more {
		file = "/" + file
	}
	return "/proc/" + p.PID.String() + file, nil
}
