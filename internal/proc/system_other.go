//go:build unix && !linux

package proc

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// rssUnit is what the kernel counts resident memory in, in bytes.
const rssUnit = 1

// BecomeSubreaper does nothing: there is no such thing here.
func BecomeSubreaper() error { return nil }

// HideMemory does nothing: there is no such thing here.
func HideMemory() error { return nil }

// Shown calls f.
func Shown(f func() error) error { return f() }

// ClearBlock does nothing: there is no such thing here.
func ClearBlock() error { return nil }

// Warded returns nothing: there can be no warden here.
func Warded() (*Guard, error) { return nil, nil }

func isSubreaper() bool                          { return false }
func dieWithParent(*syscall.SysProcAttr)         {}
func keepDescriptors()                           {}
func processTable() []stat                       { return nil }
func ownTable() []stat                           { return nil }
func statOf(int) (stat, bool)                    { return stat{}, false }
func identityOf(pid int) identity                { return identity{PID: pid} }
func alive(id identity) bool                     { return syscall.Kill(id.PID, 0) == nil }
func tokenOf(int) string                         { return "" }
func spared([]stat) map[int]bool                 { return nil }
func signal(identity, syscall.Signal)            {}
func awaitGone([]identity, time.Time) []identity { return nil }
func bootID() string                             { return "" }
func reapZombie(int) bool                        { return false }
func hasExited(int) bool                         { return false }
func sinceBoot() time.Duration                   { return 0 } // only a warden needs it
func noOrphans() bool                            { return false }

func bornIn(*syscall.SysProcAttr, cgroup) (func(), error) { return nil, errors.ErrUnsupported }

func startProcess(path string, argv []string, attr *os.ProcAttr) (*os.Process, bool, error) {
	p, err := os.StartProcess(path, argv, attr)
	return p, false, err
}

// reap waits for a child and takes its status, then calls exited.
func reap(p *os.Process, exited func()) (*os.ProcessState, error) {
	state, err := p.Wait()
	exited()
	return state, err
}
