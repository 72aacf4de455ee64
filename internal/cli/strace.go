package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
)

func straceCmd(a *app) *cobra.Command {
	var o straceFlags
	c := &cobra.Command{
		Use:   "strace [PROCESS...]",
		Short: "show the syscalls of processes",
		Long: `Strace shows each syscall of a process, alive or dead, with its result and duration, and with the
signals, waits and children between them; of several processes in the order of time. Calls that took over a
second are marked [slow]. A call that may take long (Wait, Recv, a command, a question to the model) also has
a line when it begins, which ends with <unfinished ...>. If no line follows that says how it ended, it is still
under way, or was cut off with the daemon. PID 0 makes the calls of people and of the kernel itself, such as
the Spawn of a process that has no parent: they are shown without a PROCESS only, while the daemon remembers
them. Without a PROCESS it shows the calls of all that the daemon knows of. With -f it continues until the
processes end or you press Ctrl+C, which only ends the looking.

A call has failed if it ended with an error, and so has a command that ended with an exit code other than 0, by
a signal or its time limit: [exit 1] stands behind it. The agent is told, and has not failed for that.

What is picked has to fit all of -e, --failed, --slow, --path and --since. Classes: tool (all calls on
devices but the model's), llm, fs, shell, mcp, signal, process (spawns and ends), wait, message, storage, step,
log. -e '!llm' is everything but the model. With -c the calls are counted instead, by name and device.

Where events are missing, a line says how many at most, which, and between which times; the last line says
how many in all.`,
		Example: examples(`rnix strace 3`, `rnix strace -f night`, `rnix strace -f --tree 3`, `rnix strace -e shell,fs --failed night`, `rnix strace -e '!llm' --since 10m 3 4`,
			`rnix strace --slow 1s --path '/mnt/mcp/**' 3`, `rnix strace -c --tree 3`, `rnix strace --json 3 | jq 'select(.kind=="syscall").name'`),
		Annotations:       exits("0 1 2 10 12 130"),
		Args:              argsOf(0, -1, ""),
		ValidArgsFunction: completeProcs(a, true),
		RunE: func(c *cobra.Command, args []string) error {
			req, err := o.request(c, args, time.Now())
			if err != nil {
				return err
			}
			fl, err := connectFollower(c.Context(), a)
			if err != nil {
				return err
			}
			if o.count {
				return countCalls(c.Context(), fl, a.out, req, o.sort)
			}
			return showEvents(c.Context(), fl, a.out, req, nil, func(e *ipc.Event) string { return straceLine(&a.out.out, e) })
		},
	}
	o.add(c)
	return c
}

// straceLine renders an event; failures and slow calls stand out.
func straceLine(s *stream, e *ipc.Event) string {
	if e.Kind == event.Lag {
		return s.paint(yellow, lagLine(e))
	}
	e.Time = e.Time.Local()
	line := strings.TrimRight(debug.Line((*event.Event)(e)), "\n")
	switch {
	case !debug.OfSyscall((*event.Event)(e)):
		return s.paint(cyan, line)
	case debug.Failed((*event.Event)(e)):
		return s.paint(red, line)
	case e.Dur >= time.Second:
		return s.paint(yellow, line)
	}
	return line
}

// countCalls shows how many syscalls there were and what they took, when the stream has ended or the person has
// seen enough.
func countCalls(ctx context.Context, fl *follower, out *output, req ipc.EventsRequest, order string) error {
	var sum debug.Summary
	m := &misses{}
	err := eachEvent(ctx, fl, out, req, m, func(f *ipc.Frame[ipc.Event]) { sum.Add((*event.Event)(&f.Data)) }, func(missed) {})
	if err != nil && ctx.Err() == nil {
		return err
	}
	rows := sum.Rows(order)
	if out.json() {
		for i := range rows {
			out.object(&rows[i])
		}
		if m.ranges > 0 {
			out.object(struct {
				Kind   string `json:"kind"` // missed
				Ranges int    `json:"ranges"`
				Count  uint64 `json:"count"` // at most
			}{"missed", m.ranges, m.events})
		}
		return err
	}
	if text := m.text(); text != "" {
		out.warn(text)
	}
	if len(rows) == 0 {
		out.talk("no syscalls to count")
		return err
	}
	callTable(out, rows)
	return err
}

func callTable(out *output, rows []debug.SummaryRow) {
	cols := []column{{name: "%TIME", right: true}, {name: "TOTAL", right: true}, {name: "MEAN", right: true, drop: 2}, {name: "MAX", right: true, drop: 1},
		{name: "CALLS", right: true}, {name: "ERRORS", right: true}, {name: "CALL"}, {name: "PATH"}}
	unfinished := 0
	for i := range rows {
		unfinished += rows[i].Unfinished
	}
	if unfinished > 0 {
		cols = slices.Insert(cols, 6, column{name: "UNFINISHED", right: true})
	}
	var list [][]cell
	var calls, failed int
	var total time.Duration
	for i := range rows {
		r := &rows[i]
		calls, failed, total = calls+r.Calls, failed+r.Errors, total+r.Total
		row := []cell{text(strconv.FormatFloat(100*r.Share, 'f', 1, 64)), text(debug.Duration(r.Total)), text(debug.Duration(r.Mean)), text(debug.Duration(r.Max)),
			text(number(r.Calls)), errorCount(r.Errors), text(oneLine(r.Call)), text(dash(oneLine(r.Path)))}
		if unfinished > 0 {
			row = slices.Insert(row, 6, errorCount(r.Unfinished))
		}
		list = append(list, row)
	}
	out.table(cols, list)
	more := ""
	if unfinished > 0 {
		more = fmt.Sprintf(", %s unfinished", number(unfinished))
	}
	out.talk("%s in %s, %s failed%s", plural(calls, "call", "calls"), debug.Duration(total), number(failed), more)
}

func errorCount(n int) cell {
	if n == 0 {
		return text("-")
	}
	return cell{number(n), red}
}
