//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Results of a filter.
const (
	allow   = unix.SECCOMP_RET_ALLOW
	kill    = unix.SECCOMP_RET_KILL_PROCESS
	denied  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	noAttr  = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

// Where struct seccomp_data has its fields, in bytes.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16 // six of 64 bits
)

// test is "if an argument AND mask is (or is not) a value, the result is".
type test struct {
	arg    int  // 0 to 5
	high   bool // its upper 32 bits
	mask   uint32
	not    bool
	value  uint32
	result uint32
}

// call is what happens to a system call: the result of the first test that is true, or the last word.
type call struct {
	number int
	tests  []test
	last   uint32
}

const allBits = ^uint32(0)

func is(arg int, value, result uint32) test { return test{arg, false, allBits, false, value, result} }

func isNot(arg int, value, result uint32) test { return test{arg, false, allBits, true, value, result} }

func hasAny(arg int, bits, result uint32) test { return test{arg, false, bits, true, 0, result} }

func masked(arg int, mask, value, result uint32) test {
	return test{arg, false, mask, false, value, result}
}

// assemble returns the program for a table. No number may stand in it twice. Numbers from x32 on kill (0: there are none), and
// those above newest, which this program does not know, are unknown to the command.
func assemble(arch, x32, newest uint32, calls []call) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	ret := func(result uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: result}
	}
	jump := func(op uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | op, K: k, Jt: yes, Jf: no}
	}
	program := []unix.SockFilter{load(offArch), jump(unix.BPF_JEQ, arch, 1, 0), ret(kill), load(offNumber)}
	if x32 != 0 {
		program = append(program, jump(unix.BPF_JGE, x32, 0, 1), ret(kill))
	}
	program = append(program, jump(unix.BPF_JGT, newest, 0, 1), ret(unknown))
	for _, c := range calls {
		var body []unix.SockFilter
		for _, t := range c.tests {
			body = append(body, load(argOffset(t.arg, t.high)))
			if t.mask != allBits {
				body = append(body, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: t.mask})
			}
			if t.not {
				body = append(body, jump(unix.BPF_JEQ, t.value, 1, 0), ret(t.result))
			} else {
				body = append(body, jump(unix.BPF_JEQ, t.value, 0, 1), ret(t.result))
			}
		}
		body = append(body, ret(c.last))
		program = append(program, jump(unix.BPF_JEQ, uint32(c.number), 0, uint8(len(body))))
		program = append(program, body...)
	}
	return append(program, ret(allow))
}

// argOffset returns where half of an argument is: the machine's byte order decides.
func argOffset(arg int, high bool) uint32 {
	offset := uint32(offArgs + 8*arg)
	if high == (binary.NativeEndian.Uint16([]byte{1, 0}) == 1) {
		offset += 4
	}
	return offset
}
