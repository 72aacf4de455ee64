package kernel

import (
	"rnix/types"
)

// revoked is the cause when a process has lost the ownership of what it works on.
type revoked struct{ why string }

func (r revoked) Error() string { return "lost ownership: " + r.why }

// Revoke ends a process because it does not own any more what it works on: somebody else does, or may. It ends
// as by SIGKILL, in the middle of what it does, with the exit code for that. NOT_FOUND if it does not run.
func (k *KernelImpl) Revoke(pid types.PID, why string) error {
	p, err := k.table.lookup("Revoke", pid)
	if err != nil {
		return err
	}
	p.cancel(revoked{why})
	return nil
}
