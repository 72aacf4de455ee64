package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/internal/permit"
	"rnix/ipc"
)

func allowCmd(a *app) *cobra.Command {
	var o answerOptions
	c := &cobra.Command{
		Use:        "allow N...",
		SuggestFor: []string{"approve", "accept", "grant", "yes"},
		Short:      "let a call pass that waits for your answer",
		Long: `Allow lets the call with this number be made (rnix asks lists them). The first answer counts. It is on disk
when the command returns: however often the daemon is killed, the call is made once, and asked about no more.

--for says what else passes without asking: "process", the same call again by this process; "family", by all
processes that descend from the one you started; or a time such as 2h, by the family until then. --match
says which calls: a pattern for the command, such as 'go test *', or for the file, such as 'docs/**'. For
commands each of a line must match, and nothing else may be done in it. rnix asks --grants lists what was
granted, --revoke takes it back.

--edit runs something else instead: for a command the command line, for other tools a JSON object. The agent
is told what has run.`,
		Example:           examples(`rnix allow 3`, `rnix allow 3 --for family --match 'git *'`, `rnix allow 3 --for 2h`, `rnix allow 3 --edit 'rm -rf build/tmp'`, `rnix allow 3 4 5`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, -1, "the number of an ask"),
		ValidArgsFunction: completeAsks(a),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("match") && strings.TrimSpace(o.match) == "" {
				return usagef("without --match the same call passes", "--match is empty")
			}
			if c.Flags().Changed("for") && o.scope == "" {
				return usagef("without --for nothing else passes", "--for is empty")
			}
			o.edits = c.Flags().Changed("edit")
			if o.edits && len(args) > 1 {
				return usagef("", "--edit is for one call, and %d were named", len(args))
			}
			return giveAnswers(c.Context(), a, args, o.allow)
		},
	}
	c.Flags().StringVar(&o.scope, "for", "", "what else passes: process, family, or for how long, such as 2h")
	c.Flags().StringVar(&o.match, "match", "", "with --for: which calls, such as 'git *' or 'docs/**'")
	c.Flags().StringVar(&o.edit, "edit", "", "run this instead: a command line, or a JSON object for other tools")
	_ = c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"process", "family", "1h"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func denyCmd(a *app) *cobra.Command {
	var because string
	c := &cobra.Command{
		Use:        "deny N...",
		SuggestFor: []string{"reject", "refuse", "no"},
		Short:      "refuse a call that waits for your answer",
		Long: `Deny refuses the call with this number (rnix asks lists them), or says that you do not answer a question. The
agent is told so, with your reason, and works on.`,
		Example:     examples(`rnix deny 3`, `rnix deny 3 --because "not on a Friday; open a pull request"`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        argsOf(1, -1, "the number of an ask"),

		ValidArgsFunction: completeAsks(a),
		RunE: func(c *cobra.Command, args []string) error {
			for _, word := range args[1:] {
				if _, err := strconv.ParseUint(word, 10, 64); err != nil && because == "" {
					return usagef("a reason is a flag: rnix deny "+args[0]+" --because TEXT", "%q is no number of an ask", cut(oneLine(word), 40))
				}
			}
			return giveAnswers(c.Context(), a, args, func(_ context.Context, _ *ipc.Client, req *ipc.AnswerRequest) error {
				req.Because = because
				return nil
			})
		},
	}
	c.Flags().StringVar(&because, "because", "", "what the agent is told")
	return c
}

// answerOptions are the flags of allow.
type answerOptions struct {
	scope, match, edit string
	edits              bool
}

// allow fills in an answer that allows.
func (o *answerOptions) allow(ctx context.Context, c *ipc.Client, req *ipc.AnswerRequest) error {
	req.Allow, req.Match = true, o.match
	switch s := permit.Scope(o.scope); s {
	case "", permit.ForCall, permit.ForProcess, permit.ForFamily:
		req.For = s
	default:
		d, err := time.ParseDuration(o.scope)
		if err != nil || d < time.Second {
			return usagef("", "invalid --for %q: want process, family, or a time such as 2h", o.scope)
		}
		req.ForMs = d.Milliseconds()
	}
	if o.match != "" && req.For != permit.ForProcess && req.For != permit.ForFamily && req.ForMs == 0 {
		return usagef("add --for process, --for family or --for 2h", "--match says what else passes, and not for whom")
	}
	if !o.edits {
		return nil
	}
	r, err := ipc.Call(ctx, c, ipc.ListAsks, ipc.AsksRequest{Number: req.Number})
	if err != nil || len(r.Asks) == 0 { // the answer says so
		return err
	}
	req.Input, err = edited(&r.Asks[0], o.edit)
	return err
}

// edited returns the input that is run instead of that which is asked about.
func edited(k *ipc.Ask, text string) (json.RawMessage, error) {
	var in map[string]json.RawMessage
	if k.Path != permit.ShellPath || strings.HasPrefix(strings.TrimSpace(text), "{") {
		if json.Unmarshal([]byte(text), &in) != nil || in == nil {
			return nil, usagef("", "--edit must be a JSON object for %s, such as %s", oneLine(k.Tool), cut(oneLine(string(k.Input)), 200))
		}
		return json.RawMessage(text), nil
	}
	if strings.TrimSpace(text) == "" {
		return nil, usagef("to run nothing: rnix deny "+strconv.FormatUint(k.Number, 10), "--edit is empty")
	}
	_ = json.Unmarshal(k.Input, &in) // an object, or the call would not have been asked about
	if in == nil {
		in = map[string]json.RawMessage{}
	}
	command, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	in["command"] = command
	return json.Marshal(in)
}

// giveAnswers answers asks, one after the other. One that cannot be answered does not keep the others from it.
func giveAnswers(ctx context.Context, a *app, numbers []string, fill func(context.Context, *ipc.Client, *ipc.AnswerRequest) error) error {
	list := make([]uint64, len(numbers))
	for i, word := range numbers {
		n, err := strconv.ParseUint(word, 10, 64)
		if err != nil || n == 0 {
			return usagef("rnix asks lists them", "%q is no number of an ask", cut(oneLine(word), 40))
		}
		list[i] = n
	}
	client, err := a.connect(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, n := range list {
		req := ipc.AnswerRequest{Number: n}
		if err := fill(ctx, client, &req); err != nil {
			return err
		}
		r, err := ipc.Call(ctx, client, ipc.AnswerAsk, req)
		if err != nil {
			if failed != nil {
				a.out.fail(failed)
			}
			failed = withMend(err, askOf(ctx, client, n))
			continue
		}
		sayAnswer(a.out, &r, req.Input)
	}
	return failed
}

// askOf is the mend for the number of a process where that of an ask was wanted; empty if none of that process waits.
func askOf(ctx context.Context, c *ipc.Client, n uint64) string {
	r, err := ipc.Call(ctx, c, ipc.ListAsks, ipc.AsksRequest{MaxInput: 1})
	if err != nil {
		return ""
	}
	for i := range r.Asks {
		if k := &r.Asks[i]; uint64(k.PID) == n {
			return "PID " + k.PID.String() + " waits for the answer to ask " + strconv.FormatUint(k.Number, 10) + ": " + cut(oneLine(k.Text), 200)
		}
	}
	return ""
}

// sayAnswer says what was answered; input is what is run instead, or empty.
func sayAnswer(out *output, r *ipc.AnswerResponse, input json.RawMessage) {
	if out.json() {
		out.object(r)
		return
	}
	verdict := "refused"
	if r.Allowed {
		verdict = "allowed"
	}
	if r.Text != "" {
		verdict = "answered: " + cut(oneLine(r.Text), 300)
	}
	if len(input) > 0 {
		verdict = "changed to: " + cut(oneLine(changedTo(&r.Ask, input)), 300)
	}
	out.talk("[kernel] ask %d, PID %d: %s is %s", r.Ask.Number, r.Ask.PID, oneLine(r.Ask.Text), verdict)
	if g := r.Grant; g != nil {
		until := ""
		if !g.Until.IsZero() {
			until = " until " + clock(g.Until, time.Now())
		}
		out.talk("[kernel] %s passes without asking for the %s of PID %d%s", oneLine(g.Text), g.Scope, g.PID, until)
	}
	if r.Ask.Paused {
		out.talk("[kernel] it is paused, and continues when it is resumed: rnix resume %s", r.Ask.PID)
	}
	if r.Ask.Suspended {
		out.talk("[kernel] it is suspended; the answer counts when it is resumed: rnix resume %s", r.Ask.UUID)
	}
}

// changedTo says what is run instead of a call: its command, or its input.
func changedTo(k *ipc.Ask, input json.RawMessage) string {
	c := permit.Call{Tool: k.Tool, Path: k.Path, Input: input}
	if c.Shell() {
		return c.Command()
	}
	return string(input)
}

// completeGrants offers the numbers of what was granted.
func completeGrants(a *app) completer {
	return completing(a, func(ctx context.Context, client *ipc.Client) (words []cobra.Completion) {
		r, err := ipc.Call(ctx, client, ipc.ListAsks, ipc.AsksRequest{Grants: true})
		if err != nil {
			return nil
		}
		for i := range r.Grants {
			words = append(words, cobra.CompletionWithDesc(strconv.FormatUint(r.Grants[i].Number, 10), oneLine(r.Grants[i].Text)))
		}
		return words
	})
}

// completeAsks offers the numbers of what waits for an answer.
func completeAsks(a *app) completer {
	return completing(a, func(ctx context.Context, client *ipc.Client) (words []cobra.Completion) {
		r, err := ipc.Call(ctx, client, ipc.ListAsks, ipc.AsksRequest{})
		if err != nil {
			return nil
		}
		for i := range r.Asks {
			words = append(words, cobra.CompletionWithDesc(strconv.FormatUint(r.Asks[i].Number, 10), oneLine(r.Asks[i].Text)))
		}
		return words
	})
}
