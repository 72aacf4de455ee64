package watch

import (
	"rnix/debug"
	"rnix/ipc"
)

// filterOf is the filter of a request; null picks all events.
func filterOf(f *ipc.EventFilter) *debug.Filter {
	if f == nil {
		return nil
	}
	return &debug.Filter{Classes: f.Classes, Failed: f.Failed, Slow: f.Slow, Path: f.Path, Categories: f.Categories, Log: f.Log, Level: debug.Level(f.Level)}
}
