package prelude

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const said, start = 3, 4 // descriptors of a child

// run starts a program with this standard input, and returns what it printed and reported, and how it ended.
func run(t *testing.T, p *Program, file func(says int) (*os.File, error)) (out string, report []byte, state *os.ProcessState) {
	t.Helper()
	f, err := file(said)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	outs, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outs.Close()
	says, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer says.Close()
	child, err := os.StartProcess("/proc/self/fd/4", []string{"start"}, &os.ProcAttr{Dir: "/", Env: []string{}, Files: []*os.File{nil, w, nil, told, f}})
	_, _ = w.Close(), told.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(outs)
	if err != nil {
		t.Fatal(err)
	}
	if report, err = io.ReadAll(says); err != nil {
		t.Fatal(err)
	}
	if state, err = child.Wait(); err != nil {
		t.Fatal(err)
	}
	return string(text), report, state
}

// needed skips a test on a processor that there is no code for.
func needed(t *testing.T) {
	t.Helper()
	if _, ok := code[runtime.GOARCH]; !ok {
		t.Skipf("needs another processor than %s", runtime.GOARCH)
	}
}

func print(p *Program, what, text string) {
	p.Call(Call{What: what, Number: unix.SYS_WRITE, Args: [6]uint64{1, p.Text(text), uint64(len(text))}})
}

func TestItBecomesTheCommandWithAllThatWasGiven(t *testing.T) {
	needed(t)
	dir := t.TempDir()
	long := strings.Repeat("ü\xff", 30_000)
	var p Program
	p.Call(Call{What: "the directory", Number: unix.SYS_CHDIR, Args: [6]uint64{p.Text(dir)}})
	print(&p, "print", "first\n")
	for _, fd := range []uint64{said, start} {
		p.Call(Call{What: "close", Number: unix.SYS_FCNTL, Args: [6]uint64{fd, unix.F_SETFD, unix.FD_CLOEXEC}})
	}
	p.Become("/bin/sh", []string{"name", "-c", `echo "$0|$1|$3|$PWD|$A|$B"; echo "$2"; echo /proc/self/fd/*; exit 3`, "zero", "", long, "three"}, []string{"A=a b", "B=", "C=" + long})
	out, report, state := run(t, &p, p.Open)
	lines := strings.Split(out, "\n")
	if len(lines) < 4 || lines[0] != "first" || lines[1] != "zero||three|"+dir+"|a b|" || lines[2] != long || strings.Contains(lines[3], "/fd/4") {
		t.Errorf("%.300q", out)
	}
	if len(report) > 0 || state.ExitCode() != 3 {
		t.Errorf("%q %v", report, state)
	}
}

func TestACallThatFailsIsReportedAndTheLast(t *testing.T) {
	needed(t)
	for _, c := range []struct {
		what string
		make func(p *Program)
		want error
	}{
		{"/none/such", func(p *Program) { p.Become("/none/such", nil, nil) }, syscall.ENOENT},
		{"/", func(p *Program) { p.Become("/", nil, nil) }, syscall.EACCES},
		{"a bad descriptor", func(p *Program) {
			p.Call(Call{What: "a bad descriptor", Number: unix.SYS_CLOSE, Args: [6]uint64{1 << 30}})
		}, syscall.EBADF},
		{"the last error number", func(p *Program) { // one that no call has: a filter that says so
			p.Call(Call{What: "no new privileges", Number: unix.SYS_PRCTL, Args: [6]uint64{unix.PR_SET_NO_NEW_PRIVS, 1}})
			filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_GETPID, Jf: 1}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | 4095}, {Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}}
			var b bytes.Buffer
			for _, i := range filter {
				b.Write([]byte{byte(i.Code), byte(i.Code >> 8), i.Jt, i.Jf, byte(i.K), byte(i.K >> 8), byte(i.K >> 16), byte(i.K >> 24)})
			}
			p.Call(Call{What: "the filter", Number: unix.SYS_SECCOMP, Args: [6]uint64{unix.SECCOMP_SET_MODE_FILTER, 0, p.Numbers(uint64(len(filter)), p.Put(b.Bytes()))}})
			p.Call(Call{What: "the last error number", Number: unix.SYS_GETPID})
		}, syscall.Errno(4095)},
	} {
		var p Program
		p.Call(Call{Number: unix.SYS_CLOSE, Args: [6]uint64{1 << 30}}) // may fail
		print(&p, "print", "before\n")
		c.make(&p)
		print(&p, "print", "after\n")
		out, report, state := run(t, &p, p.Open)
		err := p.Failed(report)
		if !errors.Is(err, c.want) || !strings.HasPrefix(err.Error(), c.what+": ") || out != "before\n" || state.ExitCode() != NotRun {
			t.Errorf("%s: %v, printed %q, %v", c.what, err, out, state)
		}
	}
}

// What a call returns can be an argument of later ones.
func TestResultsArePassedOn(t *testing.T) {
	needed(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("it is read"), 0o600); err != nil {
		t.Fatal(err)
	}
	var p Program
	fd, text := p.Numbers(0), p.Put(make([]byte, 16))
	p.Call(Call{What: "open", Number: unix.SYS_OPENAT, Args: [6]uint64{0, p.Text(file), unix.O_RDONLY}, Into: fd})
	p.Call(Call{What: "read", Number: unix.SYS_READ, FirstAt: fd, Args: [6]uint64{1: text, 2: 16}})
	p.Call(Call{What: "print", Number: unix.SYS_WRITE, Args: [6]uint64{1, text, 10}})
	p.Become("/bin/true", nil, nil)
	if out, report, _ := run(t, &p, p.Open); out != "it is read" || len(report) > 0 {
		t.Errorf("%q %q", out, report)
	}
}

func TestNothingCanChangeTheFile(t *testing.T) {
	f, err := File([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err == nil {
		t.Error("it was written to")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it was cut off")
	}
	if text, err := io.ReadAll(f); string(text) != "content" {
		t.Errorf("%q %v", text, err)
	}
}

// Where nothing in memory is executed, the file is on the disk, and has no name.
func TestAFileOnTheDiskRunsToo(t *testing.T) {
	needed(t)
	dir := t.TempDir()
	for range 20 { // beside other starts, which have it open for writing for a moment if they can
		var p Program
		print(&p, "print", "hello")
		p.Become("/bin/true", nil, nil)
		content := p.finish(runtime.GOARCH, said)
		out, report, _ := run(t, &p, func(int) (*os.File, error) { return onDisk(dir, content) })
		if out != "hello" || len(report) > 0 {
			t.Fatalf("%q %q", out, report)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}

func TestAReportOfSomethingElseIsAnError(t *testing.T) {
	var p Program
	print(&p, "print", "x")
	for _, report := range []string{"", "short", strings.Repeat("\xff", ReportSize), strings.Repeat("\x00", ReportSize), strings.Repeat("x", ReportSize+1)} {
		if err := p.Failed([]byte(report)); err == nil || strings.HasPrefix(err.Error(), "print") {
			t.Errorf("%q: %v", report, err)
		}
	}
}

// Each processor's file is one that its kernel loads: two segments, the first of which cannot be written and the second not be executed.
func TestTheFileIsAnExecutableOfEachProcessor(t *testing.T) {
	for name, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		var p Program
		p.Become("/bin/true", []string{"true"}, nil)
		f, err := elf.NewFile(bytes.NewReader(p.finish(name, said)))
		if err != nil {
			t.Fatal(err)
		}
		if f.Machine != machine || f.Type != elf.ET_EXEC || len(f.Progs) != 2 {
			t.Fatalf("%s: %+v", name, f.FileHeader)
		}
		x, w := f.Progs[0], f.Progs[1]
		if x.Flags != elf.PF_R|elf.PF_X || w.Flags != elf.PF_R|elf.PF_W || f.Entry < x.Vaddr || f.Entry >= x.Vaddr+x.Filesz || w.Vaddr != dataAt {
			t.Errorf("%s: %+v, %+v, entry %#x", name, x.ProgHeader, w.ProgHeader, f.Entry)
		}
		for _, s := range f.Progs {
			if s.Off%s.Align != s.Vaddr%s.Align {
				t.Errorf("%s: the segment at %#x is at %#x of the file", name, s.Vaddr, s.Off)
			}
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		var p Program
		p.Become("/bin/true", []string{"true"}, nil)
		f, err := p.Open(said)
		if err != nil {
			b.Fatal(err)
		}
		child, err := os.StartProcess("/proc/self/fd/4", []string{"start"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil, nil, f}})
		if err != nil {
			b.Fatal(err)
		}
		_, _ = child.Wait()
		_ = f.Close()
	}
}
