// Package clock serves /dev/clock: the date, the time and how long a process has run, which a model that
// works for hours cannot know otherwise.
//
// It owns how the time is told, and in whose zone (zone.go): that of the caller's environment, as for its
// commands. It knows no process: how long one has run comes in as a function.
//
// Opening it for reading gives the time of the opening; a request, {}, the time of the request. Neither
// takes anything else, and nothing is ever set.
package clock

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"rnix/types"
	"rnix/vfs"
)

// Path is where the device is registered.
const Path = "/dev/clock"

// layout is RFC 3339 with the offset in figures, also that of UTC.
const layout = "2006-01-02T15:04:05-07:00"

// New returns the device. ran tells how long a process has run; of whom it does not know, and with nil of
// all, the device says nothing about that.
func New(ran func(types.PID) (time.Duration, bool)) vfs.VFSFileFactory {
	return func(subpath string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
		if subpath != "" {
			return nil, types.Errorf(types.ErrNotFound, "Open", Path+subpath, "no such file: there is %s itself, and nothing below it", Path)
		}
		return &file{vfs.NewRequestFile(vfs.FileStat{Name: "clock", Mode: "rw-", Type: "device"}, func(_ context.Context, c vfs.Caller, data []byte) ([]byte, error) {
			if err := vfs.DecodeRequest(data, &struct{}{}); err != nil {
				return nil, err
			}
			return tell(time.Now(), c, ran), nil
		})}, nil
	}
}

// Tools returns what the device offers to models.
func Tools() []vfs.Tool {
	return []vfs.Tool{{
		Name: "clock", Description: "The current date, time, weekday and time zone, and how long you have been running.",
		Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		Path:   Path, Effect: vfs.EffectNone, Independent: true,
	}}
}

// file is an open /dev/clock.
type file struct{ *vfs.RequestFile }

// BindCaller has the time ready for who only reads.
func (f *file) BindCaller(c vfs.Caller) error {
	if err := f.RequestFile.BindCaller(c); err != nil {
		return err
	}
	return f.Write(context.Background(), []byte("{}"))
}

// tell is what a caller reads: a line "key:<tab>value" for each fact, as in /proc/<pid>/status.
func tell(now time.Time, c vfs.Caller, ran func(types.PID) (time.Duration, bool)) []byte {
	in, name := zoneOf(c.Env)
	now = now.In(in)
	var b strings.Builder
	b.WriteString("time:\t" + now.Format(layout) + "\nweekday:\t" + now.Weekday().String() + "\nzone:\t" + named(now, name) + "\n")
	if c.PID != 0 && ran != nil { // PID 0 is the user, who does not run
		if d, ok := ran(c.PID); ok {
			b.WriteString("running:\t" + d.Truncate(time.Second).String() + " (pauses not counted)\n")
		}
	}
	return []byte(b.String())
}
