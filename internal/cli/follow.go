package cli

import (
	"context"
	"errors"
	"io"

	"rnix/internal/event"
	"rnix/ipc"
)

// showEvents writes the events that req selects, one line each. render returns "" for what is not
// to be shown.
func showEvents(ctx context.Context, c *ipc.Client, out *output, req ipc.EventsRequest, wants func(*event.Event) bool, render func(*event.Event) string) error {
	feed, err := ipc.Open(ctx, c, ipc.Events, req)
	if err != nil {
		return err
	}
	defer feed.Close()
	shown := false
	for {
		f, err := feed.Next()
		switch {
		case errors.Is(err, io.EOF):
			if !shown {
				out.talk("there is nothing to show yet")
			}
			return nil
		case err != nil && gone(err) && req.Follow:
			return unreachable(err)
		case err != nil:
			return err
		case out.broken != nil:
			return nil // nobody reads; the reason is reported at the end
		case f.Missed != nil:
			shown = true
			out.say("events " + number(int(f.Missed.From)) + " to " + number(int(f.Missed.To)) + " are missing: they came faster than they could be shown")
		case wants != nil && !wants(&f.Data):
		case out.json():
			out.jsonLine(f.Raw)
		default:
			if line := render(&f.Data); line != "" {
				out.print(line + "\n")
				shown = true
			}
		}
	}
}

// about returns the request for the events of a target, or of all processes.
func about(args []string, follow, tree bool) ipc.EventsRequest {
	req := ipc.EventsRequest{History: true, Follow: follow, Tree: tree}
	if len(args) > 0 {
		req.Target, req.UntilEnd = args[0], follow
	}
	return req
}
