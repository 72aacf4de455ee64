//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/internal/sandbox/enter"
)

// Helper is the inner helper of a box, or the test that Probe runs in one, whose status it returns. The helper executes the command in the place of this program. In a program
// that imports package enter/early it has done so before main, so that there is nothing to do here but for a daemon of another version, and the status is NotRun.
func Helper(args []string) int {
	if len(args) > 0 && args[0] == checkWord {
		return checkInside(args[1:])
	}
	runtime.LockOSThread() // the thread that is confined must be the one that executes
	enter.Now()
	fmt.Fprintf(os.Stderr, "%s is started by rnix itself, which says what to do. If that was so, its file was replaced while its daemon runs; stop that with: rnix daemon stop\n", Word)
	return NotRun
}

// jobOf returns what is to be done for a command right before it is executed.
func jobOf(p Plan, c Command) enter.Job {
	env := slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return strings.HasPrefix(kv, enter.Variable+"=") })
	j := enter.Job{
		Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: env, Dir: c.Dir, Keep: c.Keep, Listen: c.Listen,
		Limits: limitsOf(p.Policy.Limits, p.Rung), Filter: program(filtered{p.Rung, p.Network, p.Unix, p.Policy.Single}),
	}
	if p.Rung == RungBwrap { // behind its arguments; its namespace sees to it that what descends from the command stays below it
		j.Says, j.Stderr = 5, 6
	} else {
		j.Says, j.Rules, j.Adopts = 4, 5, true
	}
	return j
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

// limitsOf returns which limits of resources a command has. None ever raises one.
func limitsOf(l Limits, rung Rung) []enter.Limit {
	processes := l.Processes
	if rung == RungLandlock { // it would count all processes of the user
		processes = 0
	}
	limits := []enter.Limit{{Name: "core", Which: unix.RLIMIT_CORE}}
	for _, limit := range []struct {
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
		if limit.value > 0 {
			limits = append(limits, enter.Limit{Name: limit.name, Which: limit.which, Value: uint64(limit.value)})
		}
	}
	return limits
}
