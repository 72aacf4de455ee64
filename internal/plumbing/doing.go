package plumbing

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// doing is what a git, and all that it has started, do at a moment, as far as the system says it.
type doing struct {
	known  bool   // it says it
	ticks  uint64 // of processor time that they have used
	asleep bool   // all of them wait, and none for a disk
	asked  bool   // it also says in which system calls they are
	opens  bool   // one of them waits for a file to open
	pipe   string // a pipe that has a name, and that a git among them has open: no honest one has
}

// waits reports whether what did one thing, and another later, has done nothing meanwhile, and waits for a file to open: at a pipe without a writer it does.
func (d doing) waits(later doing) bool {
	return d.known && later.known && d.ticks == later.ticks && d.asleep && later.asleep && (d.opens || !d.asked) && (later.opens || !later.asked)
}

// openCalls are the numbers of the system calls that open a file: open, openat, openat2.
var openCalls = map[string][]string{"amd64": {"2", "257", "437"}, "arm64": {"56", "437"}}[runtime.GOARCH]

// mostProcesses is how many processes are looked at. A git that has started more works.
const mostProcesses = 1 << 10

// doingOf looks at a process, and at all that it has started.
func doingOf(pid int) doing {
	d := doing{asleep: true, asked: openCalls != nil}
	family := []int{pid}
	for i := 0; i < len(family) && pid > 0; i++ {
		at := filepath.Join("/proc", strconv.Itoa(family[i]))
		name, fields := statOfProcess(at)
		if fields == nil {
			continue // it is no more
		}
		d.known = d.known || i == 0
		for _, field := range fields[11:15] { // of itself, and of children that have ended
			n, _ := strconv.ParseUint(field, 10, 64)
			d.ticks += n
		}
		if d.pipe == "" && (i == 0 || name == "git") {
			d.pipe = pipeOpenIn(at)
		}
		threads, _ := os.ReadDir(filepath.Join(at, "task"))
		for _, thread := range threads {
			family = append(family, d.thread(filepath.Join(at, "task", thread.Name()))...)
		}
		d.asleep = d.asleep && len(family) < mostProcesses
		family = family[:min(len(family), mostProcesses)]
	}
	return d
}

// thread adds what a thread does, and returns which processes it has started.
func (d *doing) thread(at string) (children []int) {
	_, fields := statOfProcess(at)
	if fields == nil || fields[0] == "Z" {
		return nil
	}
	d.asleep = d.asleep && fields[0] == "S"
	b, err := os.ReadFile(filepath.Join(at, "syscall"))
	number, _, _ := strings.Cut(string(b), " ")
	d.asked = d.asked && err == nil
	d.opens = d.opens || slices.Contains(openCalls, number)
	b, _ = os.ReadFile(filepath.Join(at, "children"))
	for child := range strings.FieldsSeq(string(b)) {
		if id, err := strconv.Atoi(child); err == nil {
			children = append(children, id)
		}
	}
	return children
}

// statOfProcess returns the name of a process or thread, and what the system says of it behind that; nil if it is no more.
func statOfProcess(at string) (name string, fields []string) {
	b, _ := os.ReadFile(filepath.Join(at, "stat"))
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')') // the name can have anything in it
	if begin < 0 || end < begin {
		return "", nil
	}
	if fields = strings.Fields(string(b[end+1:])); len(fields) < 15 {
		return "", nil
	}
	return string(b[begin+1 : end]), fields
}

// pipeOpenIn returns a pipe with a name that a process has open, beside its standard files; "" if there is none.
func pipeOpenIn(at string) string {
	list, _ := os.ReadDir(filepath.Join(at, "fd"))
	for _, e := range list {
		fd := filepath.Join(at, "fd", e.Name())
		path, err := os.Readlink(fd)
		if number, _ := strconv.Atoi(e.Name()); err != nil || number < 3 || !filepath.IsAbs(path) { // what has no name is pipe:[...]
			continue
		}
		if info, err := os.Stat(fd); err == nil && info.Mode().Type() == fs.ModeNamedPipe {
			return path
		}
	}
	return ""
}
