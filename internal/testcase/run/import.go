package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/compose"
	"rnix/internal/testcase"
	"rnix/ipc"
	"rnix/types"
)

const opImport = "Import"

// ImportOptions say which run becomes a case, and where.
type ImportOptions struct {
	Target string
	Dir    string // below it the case is made; absolute
	Name   string // of the case; empty = made of the process's name or intent
	All    bool   // all files, also where there are many
	Env    []string
}

// Imported is a case that was made.
type Imported struct {
	Name    string     `json:"name"`
	Dir     string     `json:"dir"`
	UUID    types.UUID `json:"uuid"`
	Files   int        `json:"files"` // of its workspace
	Answers int        `json:"answers"`
	Calls   int        `json:"calls"`
	Notes   []string   `json:"notes"` // what is different from the run, or left out
	Confirm []string   `json:"confirm"`
}

// When all files are taken without being asked for.
const (
	fewFiles = 200
	fewBytes = 1 << 20
)

// maxScript is how large a script may be, in bytes.
const maxScript = 8 << 20

// importer makes one case.
type importer struct {
	o     ImportOptions
	c     *ipc.Client
	x     ipc.ExportResponse
	top   *ipc.ExportedProc
	notes []string
	tmp   string

	t             tokens
	before, after map[string][]byte
	special       map[string]fs.FileMode // of before
	part          bool                   // before is not all that was there
	git           bool
}

// Import makes a case of a recorded run: a directory with case.yaml, script.yaml, the files at its beginning, and the
// expected ones. It is there whole or not at all, and one that is there already is CONFLICT. A run that has not ended,
// has no answers, or cannot be played again is INVALID, and the error says why.
func Import(ctx context.Context, c *ipc.Client, o ImportOptions) (*Imported, error) {
	m := &importer{o: o, c: c}
	var err error
	if m.x, err = ipc.Call(ctx, c, ipc.ExportRun, ipc.TargetRequest{Target: o.Target}); err != nil {
		return nil, err
	}
	m.top = &m.x.Procs[0]
	if err := m.playable(); err != nil {
		return nil, err
	}
	name := cmp.Or(o.Name, nameOf(m.top))
	if !nameFits(name) {
		return nil, types.Errorf(types.ErrInvalid, opImport, name, "a case has a name of letters, digits, dots, dashes and underscores, which becomes its directory")
	}
	dir := filepath.Join(o.Dir, name)
	if _, err := os.Lstat(dir); err == nil {
		return nil, types.Errorf(types.ErrConflict, opImport, dir, "is there already; give another name with --name, or move it away")
	}
	if m.tmp, err = os.MkdirTemp("", "rnix-import"); err != nil {
		return nil, types.Errorf(types.ErrStorage, opImport, "", "%w", err)
	}
	defer os.RemoveAll(m.tmp)
	for i := range m.x.Procs {
		m.t.add(m.x.Procs[i].Dir, testcase.History)
	}
	for i := range m.x.Procs { // a work tree or a fork's directory may lie beside the histories
		m.t.add(m.x.Procs[i].WorkDir, testcase.Workspace)
	}
	if err := m.files(ctx); err != nil {
		return nil, err
	}
	return m.make(name, dir)
}

// kindName is what people call a process that is no agent.
func kindName(kind string) string {
	if kind == compose.ProcessKind {
		return "run of a workflow"
	}
	return kind
}

// playable refuses what cannot be played again, and notes what will not be the same.
func (m *importer) playable() error {
	bad := func(p *ipc.ExportedProc, format string, args ...any) error {
		return &types.SyscallError{Syscall: opImport, PID: p.PID, Device: m.o.Target, Code: types.ErrInvalid, Err: fmt.Errorf(format, args...)}
	}
	for i := range m.x.Procs {
		p := &m.x.Procs[i]
		switch {
		case p.Kind != "" && i == 0:
			return bad(p, "is a %s, which asks no model itself; import one of the processes below it, which `rnix ps -a` shows", kindName(p.Kind))
		case p.Kind != "":
			return bad(p, "a %s below it cannot be played again", kindName(p.Kind))
		case p.Damage != "" && p.State != "running": // what else is known of it ends where that does
			return bad(p, "its record cannot be read to the end, see rnix fsck: %s", p.Damage)
		case p.State == "suspended":
			return bad(p, "is suspended and has not ended: resume it with rnix resume %d, or end it with rnix kill %d", p.PID, p.PID)
		case p.State != "dead" && p.State != "zombie":
			return bad(p, "is still running: a case is made of a run that has ended; wait for it with rnix wait %d", p.PID)
		case p.Exit == nil:
			return bad(p, "has not ended")
		case strings.HasSuffix(p.Driver, "-agent"):
			return bad(p, "was the work of an agent's command line (%s), which has its own tools: what these did cannot be played again", p.Driver)
		case len(p.MCPMounts) > 0:
			return bad(p, "used MCP servers (%s), which a case without a network does not start", strings.Join(p.MCPMounts, ", "))
		case len(p.Turns) == 0 && i == 0:
			return bad(p, "has no answer of a model in its record, so there is nothing to play again")
		}
		if p.OriginUUID != (types.UUID{}) {
			m.note("PID %d is a fork: what it has of its origin up to step %d is played as its own, from the beginning", p.PID, p.OriginStep)
		}
		if p.Said > 0 {
			m.note("PID %d was told something on its way (%s): what persons and processes said that are not in the case, does not come again; its answers stay", p.PID, types.Counted(p.Said, "time", "times"))
		}
		if p.Attached > 0 {
			m.note("PID %d was shown %s with its task, not in the case: its first message names each", p.PID, types.Counted(p.Attached, "image or PDF", "images or PDFs"))
		}
		if p.Runs > 1 {
			m.note("PID %d had %d runs; the case has one", p.PID, p.Runs)
		}
	}
	if len(m.x.Procs) > 1 {
		m.note("%d processes below it are in the case; each is known by its first message", len(m.x.Procs)-1)
	}
	return nil
}

func (m *importer) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

// make writes the case into a directory beside its place, and renames it there.
func (m *importer) make(name, dir string) (*Imported, error) {
	renumber := renumbering(&m.x)
	run := &testcase.Run{Exit: m.top.Exit.Code, Reason: m.top.Exit.Reason, Result: m.t.out(m.top.Result), Calls: callsOf(&m.x, m.t, renumber),
		Before: m.before, After: m.after, Part: m.part}
	script := testcase.Script(talksOf(&m.x, m.t, renumber))
	if len(script) > maxScript {
		return nil, types.Errorf(types.ErrExhausted, opImport, m.o.Target, "the answers of its models are %d MiB, and a script has at most %d", len(script)>>20, maxScript>>20)
	}
	expect, files := testcase.Propose(run)
	files["script.yaml"] = script
	inputs := map[string]string{}
	for _, in := range m.top.Inputs {
		inputs[in.Name] = "inputs/" + in.Name
		files["inputs/"+in.Name] = []byte(in.Text)
	}
	head := testcase.Head{Name: name, Source: m.top.UUID.String(), Notes: m.notes, Intent: m.t.out(m.top.Intent), Agent: m.top.Agent, Git: m.git, Inputs: inputs,
		Settings: testcase.Settings{MaxSteps: &m.top.MaxSteps, Skills: m.top.Skills, Allow: m.top.AllowedDevices, Deny: m.top.DeniedDevices, Window: m.top.Window}}
	files[testcase.File] = []byte(head.Text() + expect)
	if err := os.MkdirAll(m.o.Dir, 0o755); err != nil {
		return nil, types.Errorf(types.ErrInvalid, opImport, m.o.Dir, "%w", err)
	}
	tmp, err := os.MkdirTemp(m.o.Dir, "."+name+"-")
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, opImport, m.o.Dir, "%w", err)
	}
	defer os.RemoveAll(tmp) // it is gone when it was renamed
	special := map[string]fs.FileMode{}
	for path, b := range m.before {
		files["workspace/"+path], special["workspace/"+path] = b, m.special[path]
	}
	err = write(tmp, files, special)
	if err == nil {
		err = os.Chmod(tmp, 0o755)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, opImport, dir, "%w", err)
	}
	made, err := testcase.Read(dir)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
		return nil, types.Errorf(types.ErrInternal, opImport, m.o.Target, "the case that was made of it cannot be read: %w", err)
	}
	r := &Imported{Name: name, Dir: dir, UUID: m.top.UUID, Files: len(m.before), Calls: len(run.Calls), Notes: m.notes}
	for _, key := range made.Unconfirmed() {
		r.Confirm = append(r.Confirm, made.At(key))
	}
	for i := range m.x.Procs {
		r.Answers += len(m.x.Procs[i].Turns)
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	return r, nil
}

// files finds the files at the beginning and at the end of the run.
func (m *importer) files(ctx context.Context) error {
	begin, root, err := m.kept(ctx, 0, "begin")
	if err != nil {
		if ctx.Err() != nil || types.CodeOf(err) == types.ErrDisconnected {
			return err
		}
		begin = m.top.WorkDir
		changes := slices.ContainsFunc(m.x.Procs, func(p ipc.ExportedProc) bool { return p.Changes })
		if changes {
			m.note("no files were kept of the run (%v): those of now are taken, and nothing is said of the files at its end", Cause(err))
		} else {
			m.note("none of its calls could change files, so none were kept: those of now are taken")
		}
		if m.before, err = tree(begin); types.CodeOf(err) == types.ErrExhausted {
			m.note("there are too many files in %s: those that its calls name are taken", begin)
			m.before, err = m.some(begin)
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, opImport, begin, "%w", err)
		}
		if !changes {
			m.after = maps.Clone(m.before)
		}
	} else {
		if m.before, err = tree(begin); err != nil {
			return err
		}
		last := 0
		for _, t := range m.top.Turns {
			last = max(last, t.Step)
		}
		end := ""
		for ; last > 0; last-- { // the last step may have been cut off
			if end, _, err = m.kept(ctx, last, "end"); types.CodeOf(err) != types.ErrNotFound {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			m.note("the files at its end cannot be had (%v): nothing is said of them", Cause(err))
		case end != "":
			if m.after, err = tree(end); err != nil {
				return err
			}
		}
	}
	m.git = root == "git"
	m.special = special(begin, m.before)
	m.choose()
	return nil
}

// kept has the files of a step written out, and returns where the process worked in them, and of which kind they are.
func (m *importer) kept(ctx context.Context, step int, name string) (dir, kind string, err error) {
	to := filepath.Join(m.tmp, name)
	r, err := ipc.Call(ctx, m.c, ipc.RestoreFiles, ipc.RestoreRequest{Target: m.top.UUID.String(), Step: &step, To: to})
	if err != nil {
		return "", "", err
	}
	if r.Files.Limited != "" && step == 0 {
		m.note("the files are not complete: %s", r.Files.Limited)
	}
	rel, err := filepath.Rel(r.Files.Root, m.top.WorkDir)
	if err != nil || !filepath.IsLocal(rel) {
		rel = "."
	}
	return filepath.Join(to, rel), r.Files.Kind, nil
}

// nameOf makes a name of what a process was called, or of the first words of its intent.
func nameOf(p *ipc.ExportedProc) string {
	var b strings.Builder
	for _, r := range strings.ToLower(cmp.Or(p.Name, p.Intent)) {
		switch {
		case 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	return cmp.Or(strings.Trim(b.String(), "-"), "case")
}

// nameFits reports whether a name can be that of a directory.
func nameFits(name string) bool {
	if name == "" || len(name) > 100 || name[0] == '.' || name[0] == '-' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r > 0x7f || !partOfName(byte(r)) })
}
