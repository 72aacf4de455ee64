package daemon

import (
	"rnix/internal/proc"
	"rnix/internal/step"
	"rnix/ipc"
)

// guard has the warden end what children leave behind if this program is killed, and hold the lock until it has. A daemon without
// one runs too, and says so in its log.
func guard(d *Daemon, lock *ipc.Lock) error {
	if err := clearStop(d); err != nil {
		return err
	}
	if d.opt.Guard == nil {
		d.log.Warn("there is no warden: if the daemon is killed, what commands have started lives on until the next one starts, and what has hidden itself for longer")
		return nil
	}
	proc.LeaseOf(d.procs, d.platforms.Holder)
	held, err := lock.Share(d.opt.Guard.Warden())
	if err != nil {
		return err
	}
	return d.procs.Guard(d.opt.Guard, d.stop, held)
}

// settle gives back the PIDs that were reserved and not used.
func settle(d *Daemon) error {
	if d.journal.Claim().Check() != nil {
		return nil // as after kill -9
	}
	return d.pids.Settle()
}

// unclaim gives a claim back, unless the journal does.
func unclaim(d *Daemon, c *step.Claim) error {
	if d.journal != nil {
		return nil
	}
	return c.Close()
}
