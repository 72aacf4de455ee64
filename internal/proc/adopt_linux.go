package proc

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Every child is a subreaper: what descends from it stays below it while it lives, whatever leaves its session, its group
// and its environment. Linux gives that only to who asks for it itself, and no program that we start does. So a child
// begins with a program of some hundred bytes that asks, and then becomes the program that is meant: adopter.
//
// What a child leaves at its end is adopted by us. So an orphan of ours, whom nothing marks, can only be of a child that has
// ended: see stray.

// The descriptors that a child has for the time of the adopter, which closes them when it becomes the program that is meant.
const (
	adopterSays = 3 // a pipe: the adopter writes why it could not, negative, as 8 bytes
	adopterFile = 4 // the adopter itself
)

// adopterCode is the adopter for each processor, for the descriptors above. It calls
//
//	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); fcntl(3, F_SETFD, FD_CLOEXEC); fcntl(4, F_SETFD, FD_CLOEXEC)
//	execve(argv[0], argv+1, envp)
//
// and when the first or the last fails: write(3, &result, 8); exit_group(127). The stack at the start, the numbers of the calls and their
// registers are those of the System V ABI of each processor, and of the table of system calls of Linux.
var adopterCode = map[string]struct {
	machine uint16 // of the ELF header
	code    []byte
}{
	"amd64": {62, []byte{
		0xb8, 0x9d, 0, 0, 0, // mov eax, 157 (prctl)
		0xbf, 0x24, 0, 0, 0, // mov edi, 36
		0xbe, 1, 0, 0, 0, // mov esi, 1
		0x31, 0xd2, // xor edx, edx
		0x45, 0x31, 0xd2, // xor r10d, r10d
		0x45, 0x31, 0xc0, // xor r8d, r8d
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 0x3c, // jnz fail
		0xbf, adopterSays, 0, 0, 0, // mov edi, 3
		0xbe, 2, 0, 0, 0, // mov esi, 2
		0xba, 1, 0, 0, 0, // mov edx, 1
		0xb8, 0x48, 0, 0, 0, // mov eax, 72 (fcntl)
		0x0f, 0x05, // syscall
		0xbf, adopterFile, 0, 0, 0, // mov edi, 4
		0xb8, 0x48, 0, 0, 0, // mov eax, 72
		0x0f, 0x05, // syscall
		0x48, 0x8b, 0x0c, 0x24, // mov rcx, [rsp]
		0x48, 0x8b, 0x7c, 0x24, 8, // mov rdi, [rsp+8]
		0x48, 0x8d, 0x74, 0x24, 16, // lea rsi, [rsp+16]
		0x48, 0x8d, 0x54, 0xcc, 16, // lea rdx, [rsp+rcx*8+16]
		0xb8, 0x3b, 0, 0, 0, // mov eax, 59 (execve)
		0x0f, 0x05, // syscall
		0x50,                       // fail: push rax
		0xbf, adopterSays, 0, 0, 0, // mov edi, 3
		0x48, 0x89, 0xe6, // mov rsi, rsp
		0xba, 8, 0, 0, 0, // mov edx, 8
		0xb8, 1, 0, 0, 0, // mov eax, 1 (write)
		0x0f, 0x05, // syscall
		0xbf, 0x7f, 0, 0, 0, // mov edi, 127
		0xb8, 0xe7, 0, 0, 0, // mov eax, 231 (exit_group)
		0x0f, 0x05, // syscall
	}},
	"arm64": {183, words(
		0xd28014e8, // mov x8, 167 (prctl)
		0xd2800480, // mov x0, 36
		0xb24003e1, // mov x1, 1
		0xaa1f03e2, // mov x2, xzr
		0xaa1f03e3, // mov x3, xzr
		0xaa1f03e4, // mov x4, xzr
		0xd4000001, // svc 0
		0xb5000240, // cbnz x0, fail
		0xd2800328, // mov x8, 25 (fcntl)
		0xb24007e0, // mov x0, 3
		0xb27f03e1, // mov x1, 2
		0xb24003e2, // mov x2, 1
		0xd4000001, // svc 0
		0xd2800328, // mov x8, 25
		0xb27e03e0, // mov x0, 4
		0xb27f03e1, // mov x1, 2
		0xb24003e2, // mov x2, 1
		0xd4000001, // svc 0
		0xf94003e9, // ldr x9, [sp]
		0xf94007e0, // ldr x0, [sp, 8]
		0x910043e1, // add x1, sp, 16
		0x8b296fe2, // add x2, sp, x9, lsl 3
		0x91004042, // add x2, x2, 16
		0xd2801ba8, // mov x8, 221 (execve)
		0xd4000001, // svc 0
		0xd10043ff, // fail: sub sp, sp, 16
		0xf90003e0, // str x0, [sp]
		0xb24007e0, // mov x0, 3
		0x910003e1, // mov x1, sp
		0xb27d03e2, // mov x2, 8
		0xb27a03e8, // mov x8, 64 (write)
		0xd4000001, // svc 0
		0xb2401be0, // mov x0, 127
		0xd2800bc8, // mov x8, 94 (exit_group)
		0xd4000001, // svc 0
	)},
}

func words(list ...uint32) (out []byte) {
	for _, w := range list {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// adopterProgram returns the adopter as an ELF file of one segment that is loaded at a fixed address; nil for a processor that we have none for.
func adopterProgram(processor string) []byte {
	of, ok := adopterCode[processor]
	if !ok {
		return nil
	}
	const (
		base           = 0x400000
		header, segHdr = 64, 56
		size           = header + segHdr
	)
	le := binary.LittleEndian
	b := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, make([]byte, 9)...) // 64 bits, little-endian, version 1
	b = le.AppendUint16(b, 2)                                             // executable
	b = le.AppendUint16(b, of.machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+size) // entry
	b = le.AppendUint64(b, header)    // program headers
	b = le.AppendUint64(b, 0)         // no sections
	b = le.AppendUint32(b, 0)         // flags
	for _, v := range []uint16{header, segHdr, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // PT_LOAD
	b = le.AppendUint32(b, 5) // read, execute
	all := uint64(size + len(of.code))
	for _, v := range []uint64{0, base, base, all, all, 0x1000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, of.code...)
}

// adopter is the program that children begin with, or nil where it does not work: another processor, no /proc, a system that runs
// nothing out of memory, or that does not let it ask. It is kept until the program ends.
var adopter = func() *os.File {
	adopting.Lock()
	defer adopting.Unlock()
	if !adopting.tried {
		var err error
		adopting.file, err = makeAdopter(adopterProgram(runtime.GOARCH))
		adopting.tried = !errors.Is(err, syscall.EAGAIN) && !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
	}
	return adopting.file
}

var adopting struct {
	sync.Mutex
	tried bool     // +checklocks:Mutex
	file  *os.File // +checklocks:Mutex
}

// makeAdopter puts a program into memory and proves that it works.
func makeAdopter(program []byte) (*os.File, error) {
	if program == nil {
		return nil, errors.ErrUnsupported
	}
	fd, err := unix.MemfdCreate("rnix-start", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("rnix-start", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "rnix-start")
	_, err = f.Write(program)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err == nil { // the proof that all of it works: it says that a directory is no program
		if _, err = startBy(f, "/", []string{"/"}, &os.ProcAttr{Env: []string{}, Files: []*os.File{nil, nil, nil}}); errors.Is(err, syscall.EACCES) {
			return f, nil
		}
	}
	_ = f.Close() // nothing is lost
	return nil, errors.Join(err, errors.ErrUnsupported)
}

// startProcess starts a program as os.StartProcess does, as a subreaper where that can be had. A program that is given
// the descriptors after its three streams is none: the adopter needs these.
func startProcess(path string, argv []string, attr *os.ProcAttr) (p *os.Process, subreaper bool, err error) {
	if f := adopter(); f != nil && free(attr.Files) {
		p, err = startBy(f, path, argv, attr)
		return p, true, err
	}
	p, err = os.StartProcess(path, argv, attr)
	return p, false, err
}

// streams is how many descriptors every program has.
const streams = 3

// free reports whether there is room for those of the adopter after the streams.
func free(files []*os.File) bool {
	for i := streams; i <= adopterFile && i < len(files); i++ {
		if files[i] != nil {
			return false
		}
	}
	return len(files) >= streams
}

// startBy starts a program by the adopter.
func startBy(adopter *os.File, path string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	says, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer says.Close()
	of := *attr
	of.Files = append(append([]*os.File{}, attr.Files[:streams]...), w, adopter) // 3 and 4
	if len(attr.Files) > len(of.Files) {
		of.Files = append(of.Files, attr.Files[len(of.Files):]...)
	}
	p, err := os.StartProcess("/proc/self/fd/4", append([]string{path}, argv...), &of)
	_ = w.Close()   // the child has the other
	if err != nil { // such as a list of arguments that is too long
		var no syscall.Errno
		if errors.As(err, &no) {
			err = &os.PathError{Op: "fork/exec", Path: path, Err: no}
		}
		return nil, err
	}
	var result [8]byte
	if _, err := io.ReadFull(says, result[:]); err != nil { // the end: it has become the program
		return p, nil
	}
	_, _ = reap(p, func() {}) // it ends at once
	return nil, &os.PathError{Op: "fork/exec", Path: path, Err: syscall.Errno(-int64(binary.LittleEndian.Uint64(result[:])))}
}
