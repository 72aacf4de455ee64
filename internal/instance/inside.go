package instance

import (
	"os"
	"strconv"

	"rnix/internal/proc"
	"rnix/runtime/env"
	"rnix/runtime/statehome"
	"rnix/types"
)

// MayStart refuses with PERMISSION to start a daemon inside an agent of another one.
func MayStart(lookup statehome.Lookup) error {
	var set string // a box shows nothing above it
	for _, name := range []string{env.ChannelVar, env.RoadVar} {
		if value, _ := lookup(name); value != "" {
			set = name
		}
	}
	warden, inside := proc.Within(os.Getpid())
	if !inside && set == "" {
		return nil
	}
	by := "below its warden, pid " + strconv.Itoa(warden)
	if !inside {
		by = set + " is set"
	}
	return types.Errorf(types.ErrPermission, "Start", "", "this program runs inside an agent of another daemon (%s), and no daemon can be started there: its agents would have no parent, no limits and no budget", by)
}
