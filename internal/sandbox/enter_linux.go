//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"rnix/internal/prelude"
)

// running is what is written to Box.says right before the command is executed. No report of a prelude begins with it.
const running = 'R'

// enter returns the last step into a box: it gives up what the command must not have, in an order in which each call still can do what it needs, and becomes the
// command.
func enter(p Plan, c Command) (*prelude.Program, error) {
	e := entry{&prelude.Program{}}
	says := uint64(saysFD)
	if p.Rung == RungBwrap {
		says = saysInside
		e.call("standard error", unix.SYS_DUP3, stderrInside, 2, 0)
	}
	control := e.listen(c.Listen)
	e.call("the directory "+c.Dir+", which the policy may hide", unix.SYS_CHDIR, e.Text(c.Dir))
	e.call("new privileges cannot be given up", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	if p.Rung == RungLandlock { // the namespace of the other sees to it that what descends from the command stays below it
		e.call("it cannot adopt orphans", unix.SYS_PRCTL, unix.PR_SET_CHILD_SUBREAPER, 1)
	}
	if err := e.limit(limitsOf(p.Policy.Limits, p.Rung)); err != nil {
		return nil, err
	}
	e.dropCapabilities()
	// Descriptors that come with it by mistake are not the command's.
	e.call("descriptors cannot be closed", unix.SYS_CLOSE_RANGE, 3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC)
	for _, fd := range c.Keep {
		e.call(fmt.Sprintf("descriptor %d, which the command keeps, did not arrive", fd), unix.SYS_FCNTL, uint64(fd), unix.F_SETFD, 0)
	}
	if p.Rung == RungLandlock {
		e.call("the rules of Landlock cannot be turned on", unix.SYS_LANDLOCK_RESTRICT_SELF, rulesFD, 0)
	}
	e.filter(program(filtered{p.Rung, p.Network, p.Unix, p.Policy.Single}))
	e.sayRunning(says, control, len(c.Listen))
	e.Become(c.Path, append([]string{c.Path}, c.Args...), c.Env)
	return e.Program, nil
}

// entry is the last step into a box while it is made.
type entry struct{ *prelude.Program }

// call adds a call which must not fail.
func (e entry) call(what string, number uintptr, args ...uint64) {
	c := prelude.Call{What: what, Number: number}
	copy(c.Args[:], args)
	e.Call(c)
}

// listen listens at ports of the network of a box, and returns the address of the control message that hands over the listeners. The command does not inherit them.
func (e entry) listen(ports []uint16) (control uint64) {
	if len(ports) == 0 {
		return 0
	}
	message := binary.NativeEndian.AppendUint64(nil, uint64(unix.CmsgLen(each*len(ports)))) // struct cmsghdr
	message = binary.NativeEndian.AppendUint32(message, unix.SOL_SOCKET)
	message = binary.NativeEndian.AppendUint32(message, unix.SCM_RIGHTS)
	// The number of a listener is four bytes and put as eight, whose upper half the next one replaces.
	control = e.Put(append(message, make([]byte, each*len(ports)+each)...))
	for i, port := range ports {
		fd, what := control+uint64(len(message)+each*i), fmt.Sprintf("nothing can listen at port %d", port)
		address := binary.NativeEndian.AppendUint16(nil, unix.AF_INET) // struct sockaddr_in
		address = append(binary.BigEndian.AppendUint16(address, port), 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)
		e.Call(prelude.Call{What: what, Number: unix.SYS_SOCKET, Args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, Into: fd})
		e.Call(prelude.Call{What: what, Number: unix.SYS_BIND, FirstAt: fd, Args: [6]uint64{1: e.Put(address), 2: uint64(len(address))}})
		e.Call(prelude.Call{What: what, Number: unix.SYS_LISTEN, FirstAt: fd, Args: [6]uint64{1: unix.SOMAXCONN}})
	}
	return control
}

// each is how long the number of a descriptor is.
const each = 4

// limit sets limits of resources. One that is lower already stays.
func (e entry) limit(limits []limit) error {
	for _, l := range limits {
		now, err := inherited(l.which)
		if err != nil {
			return fmt.Errorf("the limit %s cannot be read: %w", l.name, err)
		}
		to := e.Numbers(min(now.Cur, l.value), min(now.Max, l.value))
		e.call("the limit "+l.name+" cannot be set to "+strconv.FormatUint(l.value, 10), unix.SYS_PRLIMIT64, 0, uint64(l.which), to, 0)
	}
	return nil
}

// lastCapability is the highest number of a capability that the kernel has.
var lastCapability = sync.OnceValue(func() uint64 {
	text, _ := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 6); err == nil {
		return n
	}
	return 63 // as many as there can be
})

// dropCapabilities gives up all capabilities. What the bounding set keeps, where it may not be changed, cannot be
// gained: there are no new privileges.
func (e entry) dropCapabilities() {
	for c := range lastCapability() + 1 {
		e.call("", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c)
	}
	e.call("", unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL) // they go with the permitted ones
	header := binary.NativeEndian.AppendUint32(nil, unix.LINUX_CAPABILITY_VERSION_3)
	const none = 2 * 3 * 4 // two sets of three numbers: effective, permitted, inheritable
	e.call("capabilities cannot be given up", unix.SYS_CAPSET, e.Put(append(header, 0, 0, 0, 0)), e.Put(make([]byte, none)))
}

// filter sets a filter of system calls.
func (e entry) filter(instructions []byte) {
	const size = 8
	length := uint64(len(instructions) / size) // struct sock_fprog: two bytes, and the address behind six that are not used
	e.call("the system call filter cannot be set", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, e.Numbers(length, e.Put(instructions)))
}

// sayRunning says that the command will be executed next, and hands over the listeners with a control message.
func (e entry) sayRunning(says, control uint64, listeners int) {
	const what = "rnix does not wait for it any more"
	text := e.Put([]byte{running})
	if listeners == 0 {
		e.call(what, unix.SYS_WRITE, says, text, 1)
		return
	}
	message := e.Numbers(0, 0, e.Numbers(text, 1), 1, control, uint64(unix.CmsgLen(each*listeners)), 0) // struct msghdr
	e.call(what, unix.SYS_SENDMSG, says, message, unix.MSG_NOSIGNAL)
}

// program returns a filter as the kernel wants it.
func program(f filtered) []byte {
	var b []byte
	for _, i := range filter(f) {
		b = binary.NativeEndian.AppendUint16(b, i.Code)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}

// limit is a limit of resources.
type limit struct {
	name  string // for errors
	which int    // as RLIMIT_NOFILE
	value uint64
}

// limitsOf returns which limits of resources a command has. None ever raises one.
func limitsOf(l Limits, rung Rung) []limit {
	processes := l.Processes
	if rung == RungLandlock { // it would count all processes of the user
		processes = 0
	}
	limits := []limit{{name: "core", which: unix.RLIMIT_CORE}}
	for _, of := range []struct {
		name  string
		which int
		value int64
	}{
		{"processes", unix.RLIMIT_NPROC, processes},
		{"memory", unix.RLIMIT_DATA, l.Memory},
		{"open_files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"file_size", unix.RLIMIT_FSIZE, l.FileSize},
		{"cpu", unix.RLIMIT_CPU, l.CPU},
	} {
		if of.value > 0 {
			limits = append(limits, limit{of.name, of.which, uint64(of.value)})
		}
	}
	return limits
}
