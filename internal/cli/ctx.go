package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/step"
	"rnix/ipc"
)

// How much ctx shows.
const (
	usualMessages = 10
	sparkCells    = 60
	shownBreaks   = 5
)

func ctxCmd(a *app) *cobra.Command {
	req := ipc.ContextRequest{}
	c := &cobra.Command{
		Use:        "ctx PROCESS",
		SuggestFor: []string{"window", "prompt"},
		Short:      "show what fills the context of a process, and how much room is left",
		Long: `Ctx shows what fills the context window of a process, alive or dead: each section of its prompt
(system prompt, skills, tools, intent, what persons and the model have said, what each tool has
brought), the largest messages, how the prompt has grown, how many steps are left until it is
compacted, and how much of it a prompt cache can use again.

Providers count whole prompts. What stands in one is its share of such a count, divided by our
estimate, and marked with ~, as is what no provider has counted yet. --step shows the prompt of one
step as it was sent, without it what the next one has. --json has the same in one object; --messages
puts all messages into it.`,
		Example:           examples(`rnix ctx 3`, `rnix ctx night --step 12`, `rnix ctx 3 --largest 30`, `rnix ctx 3 --json | jq .window`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("step") && req.Step < 1 {
				return usagef("leave it out for what the next prompt has", "--step %d is not a number of at least 1", req.Step)
			}
			if req.Largest < 1 || req.Largest > 1000 {
				return usagef("", "--largest %d is not between 1 and 1000", req.Largest)
			}
			if req.Segments && !a.out.json() {
				return usagef("rnix ctx "+args[0]+" --messages --json", "--messages is for --json")
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			req.Target = args[0]
			return contextOf(c.Context(), client, a.out, req)
		},
	}
	f := c.Flags()
	f.IntVarP(&req.Step, "step", "s", 0, "the prompt of step `N`")
	f.IntVarP(&req.Largest, "largest", "n", usualMessages, "how many of the largest messages")
	f.BoolVarP(&req.Segments, "messages", "m", false, "with --json: all messages, also those that a compaction has removed")
	return c
}

// contextOf shows what fills a context.
func contextOf(ctx context.Context, c *ipc.Client, out *output, req ipc.ContextRequest) error {
	r, err := ipc.Call(ctx, c, ipc.ContextProfile, req)
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	out.print(out.drawn(windowText(&r, out)))
	out.table(sectionTable(&r, out))
	if len(r.Largest) > 0 {
		out.print("\n" + out.out.paint(bold, "largest messages") + "\n")
		out.table(messageTable(r.Largest))
	}
	out.print(out.drawn(growthText(&r, out) + cacheText(&r, out)))
	for _, what := range r.Missing {
		out.warn("not shown: " + what)
	}
	if r.Damage != "" {
		out.warn(r.Damage)
	}
	return nil
}

// windowText says how full the window is.
func windowText(r *ipc.ContextResponse, out *output) string {
	var b strings.Builder
	which := "what the next prompt has"
	switch {
	case r.Step > 0:
		which = fmt.Sprintf("the prompt of step %d", r.Step)
	case !r.Live:
		which = "what its next prompt would have"
	}
	head := func(name, text string) {
		fmt.Fprintf(&b, "%s %s\n", out.out.paint(dim, fmt.Sprintf("%-8s", name)), text)
	}
	head("process", fmt.Sprintf("PID %d (%s), %s after %s", r.PID, r.UUID, which, plural(r.Steps, "step", "steps")))
	if name := modelName(r.Provider, r.Model); name != "" {
		head("model", name)
	}
	w := &r.Window
	text := fmt.Sprintf("%s tokens in %s", tokens(r.Tokens, r.Estimated), plural(r.Shown, "message", "messages"))
	if w.Tokens > 0 {
		text = fmt.Sprintf("%s of %s tokens, %s, in %s", tokens(r.Tokens, r.Estimated), number(w.Tokens), percent(w.Used, 1000), plural(r.Shown, "message", "messages"))
	}
	head("context", text)
	from := oneLine(w.From)
	if w.Tokens > 0 {
		from = fmt.Sprintf("%s tokens: %s", number(w.Tokens), cmp.Or(from, "as its driver says"))
	}
	head("window", from)
	if r.Compactions > 0 {
		head("compact", fmt.Sprintf("%s so far, %s removed", plural(r.Compactions, "compaction", "compactions"), plural(r.Dropped, "message", "messages")))
	}
	if r.Uncounted != "" {
		head("counts", "estimates, since "+oneLine(r.Uncounted))
	}
	return b.String() + "\n"
}

func percent(part, whole int) string {
	if whole <= 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// barCells is the length of the longest bar.
const barCells = 24

// bar is a share as a bar.
func bar(part, whole int, ascii bool) string {
	n := 0
	if whole > 0 {
		n = (part*barCells + whole/2) / whole
	}
	if n == 0 && part > 0 {
		n = 1
	}
	if ascii {
		return strings.Repeat("#", n)
	}
	return strings.Repeat("█", n)
}

func sectionTable(r *ipc.ContextResponse, out *output) ([]column, [][]cell) {
	cols := []column{{name: "SECTION", max: 32}, {name: "TOKENS", right: true}, {name: "SHARE", right: true}, {name: "MESSAGES", right: true, drop: 2}, {name: "BYTES", right: true, drop: 1}, {name: ""}}
	most := 0
	for i := range r.Sections {
		most = max(most, r.Sections[i].Tokens)
	}
	rows := make([][]cell, len(r.Sections))
	for i := range r.Sections {
		s := &r.Sections[i]
		messages := ""
		if s.Messages > 0 {
			messages = number(s.Messages)
		}
		rows[i] = []cell{text(sectionName(s.Section, s.Name)), text(tokens(s.Tokens, s.Estimated)), text(percent(s.Tokens, r.Tokens)), text(messages),
			text(size(int64(s.Bytes))), {bar(s.Tokens, most, out.ascii), cyan}}
	}
	return cols, rows
}

// sectionName is a section as people call it.
func sectionName(section, name string) string {
	switch section {
	case step.SectionToolResult:
		return "result of " + cmp.Or(oneLine(name), "a tool")
	case step.SectionSkills:
		return "skill " + oneLine(name)
	case step.SectionSystem:
		return "system prompt"
	case step.SectionProject:
		return "project's instructions"
	}
	return oneLine(section)
}

func messageTable(list []ipc.ContextSegment) ([]column, [][]cell) {
	cols := []column{{name: "MESSAGE", right: true}, {name: "SECTION", max: 24}, {name: "TOKENS", right: true}, {name: "BYTES", right: true, drop: 1}, {name: "SINCE STEP", right: true, drop: 2}, {name: "BEGINS"}}
	rows := make([][]cell, len(list))
	for i := range list {
		s := &list[i]
		since := ""
		if s.FirstStep > 0 {
			since = strconv.Itoa(s.FirstStep)
		}
		rows[i] = []cell{text(strconv.Itoa(s.N)), text(sectionName(s.Section, s.Name)), text(tokens(s.Tokens, true)), text(size(int64(s.Bytes))), text(since), text(oneLine(s.Preview))}
	}
	return cols, rows
}

// growthText draws how the prompt has grown, and says how long it fits.
func growthText(r *ipc.ContextResponse, out *output) string {
	if len(r.Prompts) == 0 {
		return "\nno step has ended yet, so nothing has grown\n"
	}
	sizes := make([]int, len(r.Prompts))
	for i := range r.Prompts {
		sizes[i] = r.Prompts[i].Tokens
	}
	first, last := &r.Prompts[0], &r.Prompts[len(r.Prompts)-1]
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s  %s  steps %d to %d: %s to %s tokens\n", out.out.paint(bold, "growth"), sparkline(sizes, sparkCells, out.ascii), first.Step, last.Step,
		tokens(first.Tokens, first.Estimated), tokens(last.Tokens, last.Estimated))
	w := &r.Window
	each := ""
	if w.Over > 0 {
		each = fmt.Sprintf("%+d tokens a step over the last %d", w.Growth, w.Over)
	}
	switch {
	case w.StepsLeft != nil && *w.StepsLeft == 0:
		fmt.Fprintf(&b, "        %s: the next prompt may be compacted, over %s tokens\n", each, number(w.CompactAt))
	case w.StepsLeft != nil:
		fmt.Fprintf(&b, "        %s: about %s until it is compacted, over %s tokens\n", each, plural(*w.StepsLeft, "step", "steps"), number(w.CompactAt))
	case w.Tokens == 0 && each != "":
		fmt.Fprintf(&b, "        %s; how many are left is not known without the size of the window\n", each)
	case each != "":
		fmt.Fprintf(&b, "        %s: it does not fill up\n", each)
	}
	return b.String()
}

// sparkline draws numbers from zero up, in at most width characters: where there are more, the largest of each few.
func sparkline(numbers []int, width int, ascii bool) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	if ascii {
		levels = []rune("_.-:=+*#")
	}
	most := max(slices.Max(append([]int{1}, numbers...)), 1)
	n := min(width, len(numbers))
	var b strings.Builder
	for i := range n {
		from, to := i*len(numbers)/n, (i+1)*len(numbers)/n
		b.WriteRune(levels[max(slices.Max(numbers[from:to]), 0)*(len(levels)-1)/most])
	}
	return b.String()
}

// cacheText says what a prompt cache can use again, and what the provider says of it.
func cacheText(r *ipc.ContextResponse, out *output) string {
	c := &r.Cache
	if len(r.Prompts) < 2 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s   %s of what was sent after the first prompt had stood at the beginning of the one before\n", out.out.paint(bold, "cache"), percent(c.Stable, c.Sent))
	if c.Said {
		fmt.Fprintf(&b, "        the provider says: %s tokens read from its cache, %s written to it\n", number(c.Read), number(c.Write))
	} else {
		b.WriteString("        the provider has said nothing of a cache\n")
	}
	skipped := max(c.Breaks-shownBreaks, 0)
	if skipped > 0 {
		fmt.Fprintf(&b, "        %s not shown\n", plural(skipped, "earlier change of what was sent before is", "earlier changes of what was sent before are"))
	}
	for i := range r.Prompts {
		p := &r.Prompts[i]
		if p.Broke == nil {
			continue
		}
		if skipped > 0 {
			skipped--
			continue
		}
		fmt.Fprintf(&b, "        step %d: %s; ~%s of the tokens before could not be used again\n", p.Step, brokeBy(p.Broke), number(p.Broke.Lost))
	}
	return b.String()
}

func brokeBy(k *ipc.ContextBreak) string {
	at := ""
	if k.Message > 0 {
		at = fmt.Sprintf(" from message %d on", k.Message)
		if k.Byte > 0 {
			at += fmt.Sprintf(", byte %d", k.Byte)
		}
	}
	switch k.By {
	case step.BreakCompaction:
		return "a compaction has changed it" + at
	case step.BreakResume:
		return "it went on with another system prompt"
	case step.BreakModel:
		return "another model answered"
	}
	return oneLine(k.By) + at
}
