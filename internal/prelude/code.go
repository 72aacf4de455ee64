package prelude

import "encoding/binary"

// code is what does the calls, for each processor. It knows the head of the data by its address, and the calls by their entries:
//
//	entry = head.table
//	for {
//		result = syscall(entry.number, *entry.firstAt, entry.args...)
//		*entry.into = result
//		if result is an error and not entry.may {
//			head.report = {result, entry}
//			entry = head.reports
//		} else {
//			entry++
//		}
//	}
//
// Which registers a call takes, and which results are errors (-4095 to -1), is that of the table of system calls of Linux: syscall(2).
var code = map[string]processor{
	"amd64": {62, 1, 231, []byte{
		0x48, 0x8b, 0x1c, 0x25, 0, 2, 0, 0x10, // mov rbx, [head.table]
		0x48, 0x8b, 0x03, // next: mov rax, [rbx]
		0x48, 0x8b, 0x7b, 8, // mov rdi, [rbx+8]
		0x48, 0x8b, 0x3f, // mov rdi, [rdi]
		0x48, 0x8b, 0x73, 16, // mov rsi, [rbx+16]
		0x48, 0x8b, 0x53, 24, // mov rdx, [rbx+24]
		0x4c, 0x8b, 0x53, 32, // mov r10, [rbx+32]
		0x4c, 0x8b, 0x43, 40, // mov r8, [rbx+40]
		0x4c, 0x8b, 0x4b, 48, // mov r9, [rbx+48]
		0x0f, 0x05, // syscall
		0x48, 0x8b, 0x4b, 56, // mov rcx, [rbx+56]
		0x48, 0x89, 0x01, // mov [rcx], rax
		0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, // cmp rax, -4095
		0x73, 6, // jae fail
		0x48, 0x83, 0xc3, 72, // on: add rbx, 72
		0xeb, 0xcb, // jmp next
		0x48, 0x83, 0x7b, 64, 0, // fail: cmp qword [rbx+64], 0
		0x75, 0xf3, // jne on
		0x48, 0x89, 0x04, 0x25, 16, 2, 0, 0x10, // mov [head.report], rax
		0x48, 0x89, 0x1c, 0x25, 24, 2, 0, 0x10, // mov [head.report+8], rbx
		0x48, 0x8b, 0x1c, 0x25, 8, 2, 0, 0x10, // mov rbx, [head.reports]
		0xeb, 0xaa, // jmp next
	}},
	"arm64": {183, 64, 94, instructions(
		0xd2a20014, // mov x20, 0x10000000
		0x91080294, // add x20, x20, 0x200
		0xf9400293, // ldr x19, [x20]
		0xf9400268, // next: ldr x8, [x19]
		0xf9400669, // ldr x9, [x19, 8]
		0xf9400120, // ldr x0, [x9]
		0xf9400a61, // ldr x1, [x19, 16]
		0xf9400e62, // ldr x2, [x19, 24]
		0xf9401263, // ldr x3, [x19, 32]
		0xf9401664, // ldr x4, [x19, 40]
		0xf9401a65, // ldr x5, [x19, 48]
		0xd4000001, // svc 0
		0xf9401e69, // ldr x9, [x19, 56]
		0xf9000120, // str x0, [x9]
		0xb13ffc1f, // cmn x0, 4095
		0x54000062, // b.cs fail
		0x91012273, // on: add x19, x19, 72
		0x17fffff2, // b next
		0xf9402269, // fail: ldr x9, [x19, 64]
		0xb5ffffa9, // cbnz x9, on
		0xf9000a80, // str x0, [x20, 16]
		0xf9000e93, // str x19, [x20, 24]
		0xf9400693, // ldr x19, [x20, 8]
		0x17ffffec, // b next
	)},
}

// processor is what a program for one is made of.
type processor struct {
	machine     uint16 // of the ELF header
	write, exit uintptr
	code        []byte
}

func instructions(list ...uint32) (b []byte) {
	for _, w := range list {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// executable returns the beginning of an ELF file, up to the data, of which it has this many bytes: https://refspecs.linuxfoundation.org/elf/elf.pdf
func executable(machine uint16, code []byte, data uint64) []byte {
	const (
		header, segment = 64, 56
		entry           = header + 2*segment
	)
	le := binary.LittleEndian
	b := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, make([]byte, 9)...) // 64 bits, little-endian, version 1
	b = le.AppendUint16(b, 2)                                             // executable
	b = le.AppendUint16(b, machine)
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, base+entry)
	b = le.AppendUint64(b, header) // the segments
	b = le.AppendUint64(b, 0)      // no sections
	b = le.AppendUint32(b, 0)      // flags
	for _, v := range []uint16{header, segment, 2, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	const (
		loaded                      = 1
		execute, write, read        = 1, 2, 4
		alignment            uint64 = 0x10000 // the largest page of these processors
	)
	size := entry + uint64(len(code))
	for _, s := range []struct {
		flags              uint32
		offset, at, length uint64
	}{{read | execute, 0, base, size}, {read | write, dataOffset, dataAt, data}} {
		b = le.AppendUint32(b, loaded)
		b = le.AppendUint32(b, s.flags)
		for _, v := range []uint64{s.offset, s.at, s.at, s.length, s.length, alignment} {
			b = le.AppendUint64(b, v)
		}
	}
	b = append(b, code...)
	return append(b, make([]byte, dataOffset-len(b))...)
}
