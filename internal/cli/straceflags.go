package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// pastFlags say which part of the past is shown.
type pastFlags struct {
	follow, tree bool
	since        string
	tail         int
}

func (p *pastFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVarP(&p.follow, "follow", "f", false, "follow until all of them have ended")
	f.BoolVarP(&p.tree, "tree", "t", false, "the descendants too, dead ones as well")
	f.StringVar(&p.since, "since", "", "only what is not older: 10m, 2h, 3d, or a `TIME` such as 14:30, 2026-12-31, 2026-12-31T14:30:00Z")
	f.IntVarP(&p.tail, "tail", "n", 0, "of the past, only the last so many lines that are picked")
}

// request returns what is asked for of processes.
func (p *pastFlags) request(c *cobra.Command, args []string, now time.Time) (ipc.EventsRequest, error) {
	req := about(args, p.follow, p.tree)
	if c.Flags().Changed("tail") && (p.tail < 1 || p.tail > 10000) {
		return req, usagef("", "--tail %d is not between 1 and 10000", p.tail)
	}
	if p.tree && len(args) == 0 {
		return req, usagef("leave it out: without a process all are shown", "--tree is for a process")
	}
	req.Tail = p.tail
	if c.Flags().Changed("since") {
		at, err := parseMoment(p.since, now)
		if err != nil {
			return req, err
		}
		req.Since = at
	}
	return req, nil
}

// parseMoment reads a moment in the past: how long ago, or when.
func parseMoment(s string, now time.Time) (time.Time, error) {
	bad := func(why string) (time.Time, error) {
		return time.Time{}, usagef("want how long ago, such as 10m or 3d, or when, such as 14:30, 2026-12-31 or 2026-12-31T14:30:00Z", "--since %q %s", s, why)
	}
	var days int
	if n, err := fmt.Sscanf(s, "%dd", &days); n == 1 && err == nil && s == fmt.Sprintf("%dd", days) && days >= 0 {
		return now.AddDate(0, 0, -days), nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		if d < 0 {
			return bad("lies in the future")
		}
		return now.Add(-d), nil
	}
	for _, form := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if t.After(now) { // yesterday's
				t = t.AddDate(0, 0, -1)
			}
			return t, nil
		}
	}
	for _, form := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04:05"} {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			if t.After(now) {
				return bad("lies in the future")
			}
			return t, nil
		}
	}
	return bad("is neither")
}

// straceFlags say what of it is shown.
type straceFlags struct {
	pastFlags
	all     bool
	classes []string
	failed  bool
	slow    time.Duration
	path    string
	count   bool
	sort    string
}

func (o *straceFlags) add(c *cobra.Command) {
	o.pastFlags.add(c)
	f := c.Flags()
	f.BoolVarP(&o.all, "all", "a", false, "all events: steps, states and log lines too")
	f.StringSliceVarP(&o.classes, "expr", "e", nil, "only these `CLASSES` or syscalls, or with ! none of these: "+strings.Join(debug.Classes(), ", "))
	f.BoolVar(&o.failed, "failed", false, "only what failed")
	f.DurationVar(&o.slow, "slow", 0, "only what took at least so long, such as 1s")
	f.StringVar(&o.path, "path", "", "only calls on a path, or of a file, of the form `GLOB`: /dev/shell, /mnt/**, '*.go'")
	f.BoolVarP(&o.count, "summary", "c", false, "count the syscalls instead: how many, how many failed, how long they took, which are unfinished")
	f.StringVar(&o.sort, "sort", "time", "order of the summary: "+strings.Join(debug.Orders(), ", "))
	fixed := func(words []string) completer {
		return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	}
	_ = c.RegisterFlagCompletionFunc("expr", fixed(append(debug.Classes(), not(debug.Classes())...)))
	_ = c.RegisterFlagCompletionFunc("sort", fixed(debug.Orders()))
}

func not(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = "!" + w
	}
	return out
}

// usual are the kinds that strace shows if nobody says which.
func usual() []event.Kind {
	return []event.Kind{event.Syscall, event.SyscallBegun, event.Spawned, event.Renamed, event.Signalled, event.Paused, event.Resumed, event.Waiting, event.Messaged, event.Delivered,
		event.Exited, event.Mounted, event.Unmounted, event.StorageError, event.Refused, event.Asked, event.Answered, event.Lag}
}

// reasonOf is an error in its own words, without what was called.
func reasonOf(err error) string {
	var e *types.SyscallError
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// checkFilter says what is wrong with a filter before the daemon is asked; nil = nothing is.
func checkFilter(f *ipc.EventFilter) error {
	_, err := (&debug.Filter{Classes: f.Classes, Failed: f.Failed, Slow: f.Slow, Path: f.Path, Categories: f.Categories, Log: f.Log, Level: debug.Level(f.Level)}).Matcher()
	return err
}

// request returns what is asked for. What cannot be is a usage error.
func (o *straceFlags) request(c *cobra.Command, args []string, now time.Time) (ipc.EventsRequest, error) {
	req, err := o.pastFlags.request(c, args, now)
	if err != nil {
		return req, err
	}
	changed := c.Flags().Changed
	for i := range o.classes {
		o.classes[i] = strings.TrimPrefix(strings.TrimSpace(o.classes[i]), "trace=") // as strace writes it
	}
	filter := &ipc.EventFilter{Classes: o.classes, Failed: o.failed, Slow: o.slow, Path: o.path}
	switch err := checkFilter(filter); {
	case err != nil:
		return req, usagef("", "%s", reasonOf(err))
	case changed("slow") && o.slow <= 0:
		return req, usagef("", "--slow %s is no duration to compare with", o.slow)
	case changed("path") && o.path == "":
		return req, usagef("", "--path has no form")
	case !slices.Contains(debug.Orders(), o.sort):
		return req, usagef("", "invalid --sort %q: want one of %s", o.sort, strings.Join(debug.Orders(), ", "))
	case changed("sort") && !o.count:
		return req, usagef("add -c", "--sort is for the summary")
	case o.count && o.all:
		return req, usagef("leave one of them out", "-c counts syscalls, and --all shows what are none")
	}
	req.Filter = filter
	named := slices.ContainsFunc(o.classes, func(c string) bool { return !strings.HasPrefix(c, "!") })
	switch {
	case o.count:
		req.Kinds = []event.Kind{event.Syscall, event.SyscallBegun, event.Lag}
	case !o.all && !named:
		req.Kinds = usual()
	}
	return req, nil
}
