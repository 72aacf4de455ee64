package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/permit"
	"rnix/ipc"
)

func answerCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:        "answer N TEXT",
		SuggestFor: []string{"reply", "respond", "tell"},
		Short:      "answer a question that an agent asks you",
		Long: `Answer answers the question with this number, which an agent asks you with its tool "ask" (rnix asks lists them,
with what the agent proposes). TEXT is one of the choices, its number, or anything else; "-" reads it from
standard input. The first answer counts. It is on disk when the command returns.

With rnix deny you say that you do not answer, and why.`,
		Example:     examples(`rnix answer 3 Postgres`, `rnix answer 3 2`, `rnix answer 3 "the one on db1; leave the others alone"`, `rnix answer 3 - <notes.txt`),
		Annotations: exits("0 1 2 10 11 12"),
		Args:        argsOf(2, -1, "the number of a question"),

		ValidArgsFunction: completeAnswer(a),
		RunE: func(c *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			if text == "-" {
				b, err := io.ReadAll(io.LimitReader(c.InOrStdin(), permit.MaxAnswer+1))
				if err != nil {
					return err
				}
				text = string(b)
			}
			if err := permit.CheckAnswer(text); err != nil {
				return usagef("", "%v", permit.Reason(err))
			}
			return giveAnswers(c.Context(), a, args[:1], func(_ context.Context, _ *ipc.Client, req *ipc.AnswerRequest) error {
				req.Allow, req.Text = true, text
				return nil
			})
		},
	}
}

// completeAnswer offers the numbers of questions, and then their choices.
func completeAnswer(a *app) completer {
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return completing(a, func(ctx context.Context, client *ipc.Client) (words []cobra.Completion) {
			r, err := ipc.Call(ctx, client, ipc.ListAsks, ipc.AsksRequest{})
			if err != nil {
				return nil
			}
			for i := range r.Asks {
				switch k := &r.Asks[i]; {
				case k.Question == nil:
				case len(args) == 0:
					words = append(words, cobra.CompletionWithDesc(strconv.FormatUint(k.Number, 10), oneLine(k.Text)))
				case len(args) == 1 && args[0] == strconv.FormatUint(k.Number, 10):
					for _, choice := range k.Question.Choices {
						words = append(words, oneLine(choice))
					}
				}
			}
			return words
		})(c, args, word)
	}
}

// ruleOf is because of what a person is asked, in a word.
func ruleOf(k *ipc.Ask) string {
	if k.Question != nil {
		return "question"
	}
	return k.Rule
}

// howToAnswer says with which commands asks are answered.
func howToAnswer(asks []ipc.Ask) string {
	question := func(k ipc.Ask) bool { return k.Question != nil }
	switch {
	case !slices.ContainsFunc(asks, question):
		return "answer with: rnix allow N, or: rnix deny N"
	case !slices.ContainsFunc(asks, func(k ipc.Ask) bool { return !question(k) }):
		return "answer with: rnix answer N TEXT, or: rnix deny N"
	}
	return "answer with: rnix allow N, or: rnix deny N; questions with: rnix answer N TEXT"
}

// answerWith says with which commands what an event tells of is answered.
func answerWith(e *ipc.Event) string {
	n := oneLine(e.Args)
	if e.Path == permit.AskPath {
		return "answer from another terminal with: rnix answer " + n + " TEXT, or: rnix deny " + n
	}
	return "answer from another terminal with: rnix allow " + n + ", or: rnix deny " + n
}

// wholeQuestion returns what belongs to a question, indented below its number. It is what the agent has written, and stands between bars.
func wholeQuestion(k *ipc.Ask) string {
	q := k.Question
	var b strings.Builder
	fmt.Fprintf(&b, "%d asks:\n", k.Number)
	quoted := func(text string) {
		for line := range strings.SplitSeq(strings.TrimSpace(debug.Sanitize(strings.ReplaceAll(text, "\t", " "))), "\n") {
			b.WriteString("    | " + line + "\n")
		}
	}
	quoted(q.Text)
	for i, choice := range q.Choices {
		fmt.Fprintf(&b, "    %2d  %s\n", i+1, oneLine(choice))
	}
	if q.Default == "" {
		return b.String()
	}
	fmt.Fprintf(&b, "    without an answer it would take: %s%s\n", cut(oneLine(q.Default), permit.MaxChoice), defaultAt(q, time.Now()))
	return b.String()
}

// defaultAt says when the default of a question counts; empty = never.
func defaultAt(q *ipc.Question, now time.Time) string {
	switch {
	case q.Until.IsZero():
		return ""
	case now.Before(q.Until):
		return " (at " + clock(q.Until, now) + ")"
	}
	return " (its time is over)"
}
