package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"rnix/internal/durable"
	"rnix/internal/trace"
	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// traceOptions is what the flags of trace say.
type traceOptions struct {
	depth    int
	critical bool
	alone    bool
	limit    int
	otlp     string
	content  bool
	force    bool
}

func traceCmd(a *app) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:        "trace PROCESS",
		SuggestFor: []string{"profile", "waterfall", "spans", "timeline"},
		Short:      "show where the time of a process went, and what decided it",
		Long: `Trace shows who ran when: a process, its steps, the requests to its model, its calls, the processes that
these have started, and what it waited for; alive or dead, over all its runs. The time between two runs, in
which nothing ran, is left out. A step lasts until it is on record with its files: a little longer than in
rnix steps, which counts to the end of its last call. A call that was not begun has no time.

The critical path is the chain that decided when the process ended: to end sooner, make one of
these shorter. Its spans have a * and the column PATH, the time that is their own and not that of something
below them; in the bars it is drawn as #, and other time as -. A bar that ends in > has no end: it still
runs, or its end is not known. ~ is a wait. The last line says what the path consists of.

--otlp writes the spans as OTLP/JSON with the names of OpenTelemetry for generative AI, to a file or to - for
standard output. What was said and answered is not in it unless --content asks for that.`,
		Example: examples(`rnix trace 3`, `rnix trace night --critical`, `rnix trace 3 --depth 2`, `rnix trace blame night`,
			`rnix trace 3 --otlp run.json`, `rnix trace 3 --otlp - | curl -d @- -H 'Content-Type: application/json' http://localhost:4318/v1/traces`,
			`rnix trace 3 --json | jq '.spans[] | select(.kind=="tool") | .name'`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			if o.otlp != "" {
				return exportTrace(c.Context(), client, a.out, args[0], &o, a.host.Version)
			}
			return showTrace(c.Context(), client, a.out, args[0], &o)
		},
	}
	f := c.Flags()
	f.IntVarP(&o.depth, "depth", "d", 0, "so many levels below the process; 0 = all")
	f.BoolVarP(&o.critical, "critical", "c", false, "only what the critical path goes through")
	o.shared(c)
	f.StringVar(&o.otlp, "otlp", "", "write the spans as OTLP/JSON to this `FILE`, or to - for standard output")
	o.export(c)
	c.AddCommand(blameCmd(a), traceExportCmd(a))
	return c
}

// shared are the flags of all commands that ask for spans.
func (o *traceOptions) shared(c *cobra.Command) {
	c.Flags().BoolVar(&o.alone, "alone", false, "without the processes below it")
	c.Flags().IntVar(&o.limit, "limit", 0, "at most so many spans, up to 50,000; what matters least is left out first (default 5,000)")
}

// export are the flags of what writes a file.
func (o *traceOptions) export(c *cobra.Command) {
	c.Flags().BoolVar(&o.content, "content", false, "in OTLP and JSON, with prompts, answers, inputs and results of calls, each up to 64 KiB")
	c.Flags().BoolVar(&o.force, "force", false, "write over a file that is there")
}

func (o *traceOptions) check(c *cobra.Command) error {
	switch {
	case o.depth < 0:
		return usagef("", "--depth %d is not a number of levels", o.depth)
	case c.Flags().Changed("limit") && (o.limit < 1 || o.limit > 50000):
		return usagef("", "--limit %d is not between 1 and 50000", o.limit)
	case c.Flags().Changed("otlp") && o.otlp == "":
		return usagef("name a file, or - for standard output", "--otlp has no file")
	case o.otlp != "" && (o.critical || o.depth > 0):
		return usagef("leave it out", "--depth and --critical are for people; --otlp writes all spans")
	case o.force && o.otlp == "":
		return usagef("add --otlp FILE", "--force is for a file that is written")
	}
	return nil
}

func (o *traceOptions) request(target string) ipc.TraceRequest {
	below := !o.alone
	return ipc.TraceRequest{Target: target, Children: &below, Limit: o.limit, Content: o.content}
}

// showTrace draws the spans of a process.
func showTrace(ctx context.Context, c *ipc.Client, out *output, target string, o *traceOptions) error {
	if o.content && !out.json() {
		return usagef("add --json, or --otlp FILE", "--content is for JSON and OTLP")
	}
	r, err := ipc.Call(ctx, c, ipc.ShowTrace, o.request(target))
	if err != nil {
		return err
	}
	if out.json() {
		r.Spans = shownSpans(&r, o)
		out.object(&r)
		return nil
	}
	if len(r.Spans) == 0 || r.Spans[0].Runs == 0 {
		out.talk("PID %d has not run yet", r.PID)
		return nil
	}
	out.print(tui.Waterfall(&tui.Theme{ASCII: out.ascii, Color: out.out.color, Bare: !out.out.color}, &r, shownSpans(&r, o), out.out.width))
	traceTalk(&r, out)
	return nil
}

// traceTalk says what is missing, and what else can be asked.
func traceTalk(r *ipc.TraceResponse, out *output) {
	if r.Cut > 0 {
		out.warn(fmt.Sprintf("%s left out; --limit shows more", plural(r.Cut, "span is", "spans are")))
	}
	if r.Withheld > 0 {
		out.warn(fmt.Sprintf("%s left out: all together are 32 MiB at most; trace a child process for its own", plural(r.Withheld, "text is", "texts are")))
	}
	for _, m := range r.Missing {
		out.warn("not in the trace: " + m)
	}
	for i := range r.Spans {
		if s := &r.Spans[i]; s.Damage != "" {
			out.warn(fmt.Sprintf("the history of PID %d is damaged, and what stands behind that is not shown: %s", s.PID, s.Damage))
		}
	}
	if len(r.Blame) > 0 {
		out.talk("what made it fail: rnix trace blame %d", r.PID)
	}
}

// shownSpans are those that the flags leave.
func shownSpans(r *ipc.TraceResponse, o *traceOptions) []ipc.Span {
	depth := map[string]int{}
	shown := []ipc.Span{}
	for i := range r.Spans {
		s := &r.Spans[i]
		if s.Parent != "" {
			depth[s.ID] = depth[s.Parent] + 1
		}
		if o.depth > 0 && depth[s.ID] > o.depth || o.critical && !s.Critical {
			continue
		}
		shown = append(shown, *s)
	}
	return shown
}

func traceExportCmd(a *app) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "export PROCESS",
		Short: "write the spans of a process as OTLP/JSON",
		Long: `Export writes the spans of a process and of those below it as one request of OTLP/JSON, which any
collector of OpenTelemetry takes at /v1/traces. The id of the trace is the UUID of the process, and the ids
of spans are the same each time, so that a second export of the same process is the same trace.

Names are those of OpenTelemetry for generative AI: invoke_agent, chat, execute_tool. What was said and
answered is not in it unless --content asks for that.`,
		Example:           examples(`rnix trace export 3 >run.json`, `rnix trace export night --file night.json`, `rnix trace export 3 --content --file run.json`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(1, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if o.otlp == "" {
				o.otlp = "-"
			}
			if err := o.check(c); err != nil {
				return err
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return exportTrace(c.Context(), client, a.out, args[0], &o, a.host.Version)
		},
	}
	c.Flags().StringVarP(&o.otlp, "file", "f", "", "write to this `FILE` instead of standard output")
	o.shared(c)
	o.export(c)
	return c
}

// exportTrace writes the spans of a process for other programs.
func exportTrace(ctx context.Context, c *ipc.Client, out *output, target string, o *traceOptions, version string) error {
	if o.otlp != "-" && !o.force {
		if _, err := os.Lstat(o.otlp); !errors.Is(err, fs.ErrNotExist) {
			return withMend(types.Errorf(types.ErrConflict, "Export", o.otlp, "there is a file already"), "name another one, or write over it with --force")
		}
	}
	req := o.request(target)
	if req.Limit == 0 {
		req.Limit = 50000
	}
	r, err := ipc.Call(ctx, c, ipc.ShowTrace, req)
	if err != nil {
		return err
	}
	spans := make([]trace.Span, len(r.Spans))
	for i := range r.Spans {
		spans[i] = trace.Span(r.Spans[i])
	}
	var b bytes.Buffer
	if err := trace.WriteOTLP(&b, r.Root, spans, "rnix", version); err != nil {
		return types.Errorf(types.ErrInternal, "Export", o.otlp, "%w", err)
	}
	if o.otlp == "-" {
		out.raw(b.Bytes())
	} else if err := durable.WriteFile(durable.OS, o.otlp, b.Bytes(), durable.Durable); err != nil {
		return err
	}
	traceTalk(&r, out)
	if o.otlp != "-" {
		out.talk("%s of PID %d are in %s", plural(len(r.Spans), "span", "spans"), r.PID, o.otlp)
	}
	return nil
}
