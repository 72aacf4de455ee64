package cli

import (
	"context"
	"strings"

	"rnix/internal/event"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/types"
)

// checkBounds asks which limits of what processes start the daemon enforces; set is what the configuration says.
func checkBounds(ctx context.Context, c *ipc.Client, set sandbox.Settings) []check {
	s, err := ipc.Call(ctx, c, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || s.Bounds == (ipc.Bounding{}) { // the daemon's own line says why, or it is an older one
		return nil
	}
	return []check{enforced(s.Bounds, set.Bounds)}
}

// enforced says which limits are enforced where a configuration sets some.
func enforced(is ipc.Bounding, set types.Bounds) check {
	var by, not []string
	bad := false
	asked, held := set.Asked(), set.Held()
	for _, b := range []struct {
		name, text        string
		limited, enforced bool
		asked             bool
	}{{event.BoundProcesses, held.Processes.String(), held.Processes > 0, is.Processes, asked.Processes > 0}, {event.BoundMemory, held.Memory.String(), held.Memory > 0, is.Memory, asked.Memory > 0}} {
		text := b.name + ", as configured " + b.text
		if !b.limited {
			text = b.name + ", as configured without a limit"
		}
		if b.enforced {
			by = append(by, text)
		} else {
			not, bad = append(not, text), bad || b.asked
		}
	}
	if len(not) == 0 {
		return check{"limits", fine, "cgroups limit what each process starts: " + strings.Join(by, "; "), ""}
	}
	detail := "no cgroup limits " + strings.Join(not, "; ")
	if len(by) > 0 {
		detail = "cgroups limit " + strings.Join(by, "; ") + "; " + detail
	}
	status := absent
	if bad {
		status = warned
	}
	return check{"limits", status, detail + ": " + is.Why, "stop the daemon, and start it alone in a cgroup (v2) with these controllers, such as: systemd-run --user --scope -p Delegate=yes rnix daemon start"}
}
