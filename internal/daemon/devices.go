package daemon

import (
	"errors"

	"rnix/drivers/fs"
	"rnix/drivers/shell"
	wsdriver "rnix/drivers/workspace"
	"rnix/internal/profile"
)

// registerDevices registers what is there for every process; none of it serves what is in own. A list of devices in
// a file may name what agent.Devices names.
func registerDevices(d *Daemon, own *fs.Own) error {
	return errors.Join(
		d.devices.Register("/dev/llm", d.models.Open),
		d.devices.RegisterTools(fs.Path, fs.New(d.seen, own).Open, fs.Tools()),
		d.devices.RegisterTools(wsdriver.Path, wsdriver.New(d.seen, own).Open, wsdriver.Tools()),
		d.devices.RegisterTools("/dev/shell", shell.New(d.procs, shell.Options{TimeoutOf: profile.ShellTimeout, Quota: d.outputs}), shell.Tools("/dev/shell")),
	)
}
