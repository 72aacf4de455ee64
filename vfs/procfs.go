package vfs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// ProcSource tells /proc what there is to show. Every answer is a copy, and comes quickly: from
// memory, or from one small file.
type ProcSource interface {
	// Processes returns the PIDs that have a directory, in order.
	Processes() []types.PID
	// Status describes one of them; false if there is none.
	Status(pid types.PID) (ProcStatus, bool)
	// Sees reports whether a process may read what another one was told, said and did: whether that is the process
	// itself, or was started below it.
	Sees(reader, pid types.PID) bool
	// Context returns the conversation of a process as text for people.
	Context(pid types.PID) (string, error)
	// Steps returns one line for each step of a process, oldest first.
	Steps(pid types.PID) ([]ProcStep, error)
	// Calls returns one line for each attempt of each call of a process, oldest first.
	Calls(pid types.PID) ([]ProcCall, error)
	// Input returns the whole text of one of the inputs of a process. NOT_FOUND if it has no such input.
	Input(pid types.PID, name string) (string, error)
	// Messages returns the messages to a process, oldest first.
	Messages(pid types.PID) ([]ProcMessage, error)
	// Threads returns the threads and coroutines of a process.
	Threads(pid types.PID) ([]ProcThread, error)
	// Step returns one step in full; it is shown as JSON. NOT_FOUND if there is no such step.
	Step(pid types.PID, number int) (any, error)
}

// ProcStatus is what /proc shows of a process besides its conversation, steps and open files. The
// zero value of a field means "none" or "not known".
type ProcStatus struct {
	PID            types.PID
	PPID           types.PID
	UUID           types.UUID
	ParentUUID     types.UUID
	Name           string
	State          string // created, running, suspended, zombie, dead
	Wait           string // what it waits for
	WaitUntil      time.Time
	Intent         string
	Agent          string
	Labels         types.Labels
	Provider       string
	Model          string
	Skills         []string
	BlockedSignals []types.Signal
	PendingSignals []types.Signal // of those, what has come
	OnInterrupt    string
	Step           int
	MaxSteps       int // 0 = no limit
	TokensUsed     int
	Estimated      bool    // some of TokensUsed are counted by us
	ContextBudget  int     // tokens, with those of its descendants; 0 = unlimited
	BudgetUSD      float64 // likewise
	BudgetUsed     int     // tokens, with those of its descendants
	BudgetUsedUSD  float64 // likewise
	CostUSD        float64
	Unpriced       int // tokens of which nobody knows what they cost
	FailedCalls    int // of its steps
	CreatedAt      time.Time
	Elapsed        time.Duration // without pauses
	Timeout        time.Duration // of the whole process; 0 = none
	StepTimeout    time.Duration // 0 = none
	AllowedDevices []string      // nil = all, empty = none
	DeniedDevices  []string      // refused whatever AllowedDevices says
	MCPMounts      []string
	MCPDown        []types.MCPDown // of these, the servers that cannot be reached, each with the reason
	WorkDir        string
	ReadRoots      []string
	Inputs         []string // names of what it was given with its intent
	Tools          []Tool
	Children       []types.PID
	OSChildren     int
	Exit           *types.ExitStatus
}

// ProcStep is one line of /proc/<pid>/steps.
type ProcStep struct {
	Number   int
	Action   string
	Tokens   int
	Duration time.Duration
	Summary  string
	Error    string
}

// ProcCall is one line of /proc/<pid>/ledger.
type ProcCall struct {
	Step     int
	Verdict  string // what became of it: done, failed, running, in doubt, ...
	ID       string
	Tool     string
	Effect   string
	Duration time.Duration
	Text     string // first line of the result or the error
}

// ProcThread is one line of /proc/<pid>/threads.
type ProcThread struct {
	Kind   string // thread or coroutine
	ID     uint64
	State  string // running or dead; of a coroutine, running or suspended
	Intent string
}

// ProcFS serves /proc: "/proc" lists the PIDs, and "self" for a caller that is a process;
// "/proc/<pid>" lists the files of one, procFiles. A file holds what was true when it was opened.
// Nothing can be written. What a process was told, said and did is for the user, for itself and for those above
// it (ProcSource.Sees); the rest is for everybody who may open /proc.
type ProcFS struct {
	source ProcSource
	vfs    *VFS
}

// NewProcFS returns a ProcFS over source that lists the open files of v.
func NewProcFS(source ProcSource, v *VFS) *ProcFS { return &ProcFS{source: source, vfs: v} }

// Open opens the file at subpath; its content is made when the caller is bound.
func (p *ProcFS) Open(subpath string, flags OpenFlag) (VFSFile, error) {
	if flags.CanWrite() {
		return nil, types.Errorf(types.ErrPermission, "Open", "/proc"+subpath, "/proc is read-only: use signals to change a process")
	}
	return &procFile{proc: p, subpath: subpath, RequestFile: NewRequestFile(FileStat{Mode: "r--", Type: "proc"}, nil)}, nil
}

// inputsDir is the one directory among the files of a process.
const inputsDir = "inputs"

// procFiles are the files of a process, with what makes their content. Those that are told have words of its
// conversation in them, and so have all below them.
var procFiles = []struct {
	name    string
	told    bool
	content func(*ProcFS, ProcStatus) (string, error)
}{
	{"children", false, func(_ *ProcFS, s ProcStatus) (string, error) { return lines(s.Children), nil }},
	{"context", true, func(p *ProcFS, s ProcStatus) (string, error) { return p.source.Context(s.PID) }},
	{"fd", false, (*ProcFS).fds},
	{inputsDir, true, func(_ *ProcFS, s ProcStatus) (string, error) { return lines(s.Inputs), nil }},
	{"intent", false, func(_ *ProcFS, s ProcStatus) (string, error) { return s.Intent + "\n", nil }},
	{"ledger", true, (*ProcFS).ledger},
	{"limits", false, func(_ *ProcFS, s ProcStatus) (string, error) { return s.limits(), nil }},
	{"messages", true, (*ProcFS).messages},
	{"mounts", false, func(_ *ProcFS, s ProcStatus) (string, error) { return lines(s.MCPMounts), nil }},
	{"status", false, func(_ *ProcFS, s ProcStatus) (string, error) { return s.String(), nil }},
	{"steps", true, (*ProcFS).steps},
	{"threads", false, (*ProcFS).threads},
	{"tools", false, func(_ *ProcFS, s ProcStatus) (string, error) { return s.tools(), nil }},
}

// content returns what a caller sees at subpath, and whether that is a listing.
func (p *ProcFS) content(subpath string, caller Caller) (text string, dir bool, err error) {
	path := "/proc" + subpath
	parts := strings.FieldsFunc(subpath, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		names := lines(p.source.Processes())
		if _, alive := p.source.Status(caller.PID); alive && caller.PID != 0 {
			names += "self\n"
		}
		return names, true, nil
	}
	pid, perr := types.ParsePID(parts[0])
	if parts[0] == "self" {
		if pid, perr = caller.PID, nil; pid == 0 {
			return "", false, types.Errorf(types.ErrNotFound, "Open", path, "self: the caller is not a process")
		}
	} else if perr == nil && pid.String() != parts[0] {
		perr = fmt.Errorf("%q is not how PID %d is written", parts[0], pid)
	}
	if perr != nil {
		return "", false, types.Errorf(types.ErrNotFound, "Open", path, "no process is called %q; /proc has the living ones under their PIDs", parts[0])
	}
	status, ok := p.source.Status(pid)
	if !ok {
		return "", false, types.Errorf(types.ErrNotFound, "Open", path, "no process %d is alive; `rnix ps -a` shows those that have ended", pid)
	}
	if caller.PID != 0 && !p.source.Sees(caller.PID, pid) {
		down := status.MCPDown
		status.MCPDown = nil
		for _, d := range down { // why may end with what the server wrote, which is no other agent's to see
			status.MCPDown = append(status.MCPDown, types.MCPDown(d.Server()))
		}
	}
	if len(parts) > 1 && told(parts[1]) && caller.PID != 0 && !p.source.Sees(caller.PID, pid) {
		return "", false, types.Errorf(types.ErrPermission, "Open", path, "process %d may read what it and its own descendants were told, said and did, not that of others; /proc/%d/status is for everybody", caller.PID, pid)
	}
	if len(parts) == 1 {
		for _, f := range procFiles {
			text += f.name
			if f.name == inputsDir {
				text += "/"
			}
			text += "\n"
		}
		return text, true, nil
	}
	if len(parts) == 3 && parts[1] == "steps" {
		text, err = p.step(pid, parts[2], path)
		return text, false, err
	}
	if len(parts) == 3 && parts[1] == "messages" {
		text, err = p.message(pid, parts[2], path)
		return text, false, err
	}
	if len(parts) == 3 && parts[1] == inputsDir {
		text, err = p.source.Input(pid, parts[2])
		return text, false, err
	}
	for _, f := range procFiles {
		if f.name == parts[1] && len(parts) == 2 {
			text, err = f.content(p, status)
			return text, f.name == inputsDir, err
		}
	}
	return "", false, types.Errorf(types.ErrNotFound, "Open", path, "no such file: a process has %s", strings.Join(p.names(), ", "))
}

// told reports whether a file of a process, or what is below it, has words of its conversation in it.
func told(name string) bool {
	for _, f := range procFiles {
		if f.name == name {
			return f.told
		}
	}
	return false
}

func (p *ProcFS) names() []string {
	var out []string
	for _, f := range procFiles {
		out = append(out, f.name)
	}
	return append(out, "inputs/<name>", "messages/<number>", "steps/<number>")
}

func (p *ProcFS) fds(s ProcStatus) (string, error) {
	var b strings.Builder
	for _, fd := range p.vfs.List(s.PID) {
		fmt.Fprintf(&b, "%d\t%s\n", fd.FD, fd.Path)
	}
	return b.String(), nil
}

func (p *ProcFS) steps(s ProcStatus) (string, error) {
	steps, err := p.source.Steps(s.PID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, st := range steps {
		text := st.Summary
		if st.Error != "" {
			text = "error: " + st.Error
		}
		fmt.Fprintf(&b, "%d\t%s\t%d tokens\t%d ms\t%s\n", st.Number, st.Action, st.Tokens, st.Duration.Milliseconds(), oneLine(text))
	}
	return b.String(), nil
}

func (p *ProcFS) ledger(s ProcStatus) (string, error) {
	calls, err := p.source.Calls(s.PID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\t%s\t%d ms\t%s\n", c.Step, c.Verdict, oneLine(c.ID), oneLine(c.Tool), c.Effect, c.Duration.Milliseconds(), oneLine(c.Text))
	}
	return b.String(), nil
}

func (p *ProcFS) threads(s ProcStatus) (string, error) {
	threads, err := p.source.Threads(s.PID)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range threads {
		fmt.Fprintf(&b, "%s\t%d\t%s\t%s\n", t.Kind, t.ID, t.State, oneLine(t.Intent))
	}
	return b.String(), nil
}

func (p *ProcFS) step(pid types.PID, number, path string) (string, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return "", types.Errorf(types.ErrNotFound, "Open", path, "%q is not the number of a step", number)
	}
	step, err := p.source.Step(pid, n)
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(step, "", "  ")
	if err != nil {
		return "", types.Errorf(types.ErrInternal, "Open", path, "step %d: %w", n, err)
	}
	return string(b) + "\n", nil
}

// procFile is an open file of /proc: a RequestFile whose answer is there from the start.
type procFile struct {
	*RequestFile
	proc    *ProcFS
	subpath string
}

// BindCaller makes the content.
func (f *procFile) BindCaller(c Caller) error {
	text, dir, err := f.proc.content(f.subpath, c)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caller, f.answer, f.asked = c, []byte(text), true
	f.stat.Name = f.subpath[strings.LastIndexByte(f.subpath, '/')+1:]
	f.stat.IsDir = dir
	if f.stat.Name == "" {
		f.stat.Name = "proc"
	}
	return nil
}

// Write is always refused.
func (f *procFile) Write(context.Context, []byte) error {
	return types.Errorf(types.ErrPermission, "Write", "/proc"+f.subpath, "/proc is read-only: use signals to change a process")
}

// lines returns one line for each value.
func lines[T any](values []T) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintln(&b, v)
	}
	return b.String()
}

// oneLine makes text fit for a line of a listing.
func oneLine(text string) string {
	return strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", " ").Replace(text)
}

// tools returns one line for each tool: name, effect, path.
func (s ProcStatus) tools() string {
	var b strings.Builder
	tools := slices.Clone(s.Tools)
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	for _, t := range tools {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", t.Name, t.Effect, t.Path)
	}
	return b.String()
}
