package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

func logCmd(a *app) *cobra.Command {
	var past pastFlags
	var category []string
	var level string
	c := &cobra.Command{
		Use:        "log [PROCESS...]",
		Aliases:    []string{"logs"},
		SuggestFor: []string{"tail", "attach"},
		Short:      "show what agents think, say and do",
		Long: `Log shows the log of processes, alive or dead: what they think, what their models say, which tools they call
and what these print, what went wrong, and how they ended if that was no success; of several in the order of
time. Without a process it shows those of all that the daemon knows of. With -f it follows until they end
or you press Ctrl+C, which only ends the looking, and shows what edits change in files meanwhile (not with
-q or --json). A daemon that crashes is started again, and one that was stopped is waited for
(RNIX_DAEMON_WAIT, default 30s).

Levels: debug (think), info (tool, output), warning, error (what failed). --level shows one and those above
it. Where lines are missing, it says so.`,
		Example: examples(`rnix log 3`, `rnix log -f night`, `rnix log 3 4 --since 10m`, `rnix log -f -n 20 --tree 3`, `rnix log 3 --category tool,warning`, `rnix log --level warning`,
			`rnix log --json 0191f3a2`),
		Annotations:       exits("0 1 2 10 12 130"),
		Args:              argsOf(0, -1, ""),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := past.request(c, args, time.Now())
			if err != nil {
				return err
			}
			req = logOf(req)
			req.Filter.Categories, req.Filter.Level = category, level
			if err := checkFilter(req.Filter); err != nil {
				return usagef("", "%s", reasonOf(err))
			}
			if c.Flags().Changed("level") && level == "" {
				return usagef("", "--level is empty")
			}
			fl, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			req.Speech = true
			req.Steps = req.Follow && a.out.talks() && showsTools(req.Filter)
			var edits editReader
			return showEvents(c.Context(), fl, a.out, req, nil, func(e *ipc.Event) string {
				if req.Steps && e.Kind == event.StepEnded {
					return logEdits(c.Context(), fl.client, &edits, a.out, e)
				}
				return logLine(&a.out.out, e)
			})
		},
	}
	past.add(c)
	c.Flags().StringSliceVarP(&category, "category", "c", nil, "only these: "+strings.Join(debug.Categories(), ", "))
	c.Flags().StringVarP(&level, "level", "l", "", "only this level and those above it: "+levelWords())
	fixed := func(words []string) completer {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	_ = c.RegisterFlagCompletionFunc("category", fixed(debug.Categories()))
	_ = c.RegisterFlagCompletionFunc("level", fixed(strings.Split(levelWords(), ", ")))
	return c
}

// logOf asks for the log of the processes that a request is about.
func logOf(req ipc.EventsRequest) ipc.EventsRequest {
	req.Filter = &ipc.EventFilter{Log: true}
	req.Kinds = []event.Kind{event.LogLine, event.Exited, event.StorageError, event.Stalled, event.Refused, event.Asked, event.Answered, event.Lag}
	return req
}

func levelWords() string {
	var words []string
	for _, l := range debug.Levels() {
		words = append(words, string(l))
	}
	return strings.Join(words, ", ")
}

// showsTools reports whether what tools print is among what a filter picks.
func showsTools(f *ipc.EventFilter) bool {
	return (len(f.Categories) == 0 || slices.Contains(f.Categories, "tool")) && (f.Level == "" || f.Level == string(debug.LevelDebug) || f.Level == string(debug.LevelInfo))
}

// logEdits renders what a step has changed in files: a line for each edit, and the difference below it.
func logEdits(ctx context.Context, c *ipc.Client, edits *editReader, out *output, e *ipc.Event) string {
	lines := editLines(out, &out.out, e, edits.of(ctx, c, e), func(k *ipc.StepCall, file string) string {
		line := *e
		line.Kind, line.Name, line.Text, line.Err, line.Code = event.LogLine, "tool", oneLine(k.Name)+with(" ", file), "", ""
		if k.Path == "/dev/workspace" {
			line.Text, _, _ = strings.Cut(k.Result, "\n") // which says what has changed, in a line
		}
		return logLine(&out.out, &line)
	})
	return strings.Join(lines, "\n")
}

// logLine renders a line of a log, with its category coloured.
func logLine(s *stream, e *ipc.Event) string {
	l, said := debug.LogEntry((*event.Event)(e))
	name := e.Name
	if !said { // it has ended without success, which may be all there is
		name = debug.CategoryOf((*event.Event)(e))
		l = types.LogEntry{Seq: e.Seq, Time: e.Time, PID: e.PID, Category: name, Text: logText(e)}
	}
	l.Time = l.Time.Local()
	line := debug.LogLine(l)
	st, ok := map[string]style{"think": dim, "tool": cyan, "output": green, "warning": yellow}[name]
	if debug.LevelOf((*event.Event)(e)) == debug.LevelError {
		st = red
	}
	if !ok || !s.color {
		return line
	}
	return strings.Replace(line, "["+name+"]", s.paint(st, "["+name+"]"), 1)
}

// logText says what an event is about that is no line of a log.
func logText(e *ipc.Event) string {
	switch e.Kind {
	case event.Lag:
		_, text, _ := strings.Cut(lagLine(e), " "+e.PID.String()+" ")
		return text
	case event.StorageError:
		return "storage error: " + oneLine(e.Path) + ": " + oneLine(e.Err)
	case event.Refused:
		return oneLine(e.Text)
	case event.Asked:
		return "asked " + oneLine(e.Args) + ": " + oneLine(e.Text)
	case event.Answered:
		return strings.TrimSuffix("ask "+oneLine(e.Args)+" is "+answerWords(e.Result)+": "+oneLine(e.Text), ": ")
	case event.Stalled:
		if e.Result == "over" {
			return "makes progress again"
		}
		return "no progress for " + debug.Duration(e.Dur) + ": " + oneLine(e.Text)
	}
	if e.Result == suspended {
		return "suspended: " + oneLine(e.Exit.Reason)
	}
	return exitText(e.Exit)
}
