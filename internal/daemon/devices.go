package daemon

import (
	"errors"

	"rnix/drivers/clock"
	"rnix/drivers/fs"
	"rnix/drivers/shell"
	"rnix/drivers/web"
	wsdriver "rnix/drivers/workspace"
	"rnix/internal/procview"
	"rnix/internal/profile"
	"rnix/internal/service/confine"
	"rnix/kernel"
)

// registerDevices registers what is there for every process; none of it serves what is in own. A list of devices in
// a file may name what agent.Devices names.
func registerDevices(d *Daemon, own *fs.Own) error {
	openSandbox(d, own)
	pages := web.Options{Open: confine.Pages(d.sandbox), Offered: confine.Networked, Engine: confine.Engine, Searches: confine.Searches}
	return errors.Join(
		d.devices.Register("/dev/llm", d.models.Open),
		d.devices.RegisterTools(clock.Path, clock.New(procview.Ran(func() *kernel.KernelImpl { return d.kernel })), clock.Tools()),
		d.devices.RegisterTools(fs.Path, fs.New(d.seen, own).Open, fs.Tools()),
		d.devices.RegisterTools(wsdriver.Path, wsdriver.New(d.seen, own).Open, wsdriver.Tools()),
		d.devices.RegisterTools("/dev/shell", shell.New(d.procs, shell.Options{TimeoutOf: profile.ShellTimeout, Quota: d.outputs, Refused: d.sandbox.Refusals.Tell}), shell.Tools("/dev/shell")),
		d.devices.RegisterTools(web.Path, web.New(pages), pages.Tools()),
	)
}
