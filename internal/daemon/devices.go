package daemon

import (
	"errors"
	"time"

	"rnix/drivers/clock"
	"rnix/drivers/fs"
	"rnix/drivers/shell"
	wsdriver "rnix/drivers/workspace"
	"rnix/internal/profile"
	"rnix/types"
)

// registerDevices registers what is there for every process; none of it serves what is in own. A list of devices in
// a file may name what agent.Devices names.
func registerDevices(d *Daemon, own *fs.Own) error {
	openSandbox(d, own)
	return errors.Join(
		d.devices.Register("/dev/llm", d.models.Open),
		d.devices.RegisterTools(clock.Path, clock.New(ranOf(d)), clock.Tools()),
		d.devices.RegisterTools(fs.Path, fs.New(d.seen, own).Open, fs.Tools()),
		d.devices.RegisterTools(wsdriver.Path, wsdriver.New(d.seen, own).Open, wsdriver.Tools()),
		d.devices.RegisterTools("/dev/shell", shell.New(d.procs, shell.Options{TimeoutOf: profile.ShellTimeout, Quota: d.outputs, Refused: d.sandbox.Refusals.Tell}), shell.Tools("/dev/shell")),
	)
}

// ranOf tells how long a process has run, once there is a kernel.
func ranOf(d *Daemon) func(types.PID) (time.Duration, bool) {
	return func(pid types.PID) (time.Duration, bool) {
		p, ok := d.kernel.Process(pid)
		if !ok {
			return 0, false
		}
		return p.Elapsed(time.Now()), true
	}
}
