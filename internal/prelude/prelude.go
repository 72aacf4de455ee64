// Package prelude makes the programs that children begin with. Some things a process can only do for itself: be confined, be a subreaper, give up
// rights. Between fork and execve no Go code can run, and a Go program as the first step would take milliseconds before it does anything. So a
// child begins with a program of some kilobytes that was made for it alone: it does a list of system calls, one after the other, and the last of them
// makes it the program that is meant. It lies in memory, with all that its calls point to.
package prelude

import (
	"encoding/binary"
	"fmt"
	"syscall"
)

// NotRun is the exit status of a program one of whose calls failed.
const NotRun = 125

// Call is a system call.
type Call struct {
	What   string // what cannot be done if it fails, for the error; empty = it may fail
	Number uintptr
	Args   [6]uint64
	// FirstAt is where the first argument is then, which Args[0] is not; 0 = that is it.
	FirstAt uint64
	Into    uint64 // where its result is put, as 8 bytes; 0 = nowhere
}

// Program is a list of system calls, and what they point to. The zero value is empty. It is not safe for concurrent use.
type Program struct {
	data  []byte
	calls []Call
}

// Call adds a call.
func (p *Program) Call(c Call) {
	if c.FirstAt == 0 {
		c.FirstAt = p.Numbers(c.Args[0])
	}
	p.calls = append(p.calls, c)
}

// Put returns the address of bytes that the calls can read and write.
func (p *Program) Put(b []byte) uint64 {
	at := dataAt + headSize + uint64(len(p.data))
	p.data = append(p.data, b...)
	p.data = append(p.data, make([]byte, -len(p.data)&(word-1))...)
	return at
}

// Text returns the address of a text with a NUL behind it. The text itself has none, or is cut there.
func (p *Program) Text(s string) uint64 { return p.Put(append([]byte(s), 0)) }

// Numbers returns the address of numbers of eight bytes.
func (p *Program) Numbers(n ...uint64) uint64 {
	var b []byte
	for _, v := range n {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return p.Put(b)
}

// Texts returns the address of the addresses of texts, with a null behind them, as execve takes them.
func (p *Program) Texts(list []string) uint64 {
	all := make([]uint64, 0, len(list)+1)
	for _, s := range list {
		all = append(all, p.Text(s))
	}
	return p.Numbers(append(all, 0)...)
}

// ReportSize is how long a report is.
const ReportSize = 16

// Failed returns what a report says: which call failed, and why. The error wraps a syscall.Errno.
func (p *Program) Failed(report []byte) error {
	if len(report) != ReportSize {
		return fmt.Errorf("%d bytes, which are no report of the program that starts it", len(report))
	}
	result, at := int64(binary.LittleEndian.Uint64(report)), binary.LittleEndian.Uint64(report[word:])
	what := "an unknown step"
	if n := (at - p.table()) / entrySize; at >= p.table() && n < uint64(len(p.calls)) {
		what = p.calls[n].What
	}
	return fmt.Errorf("%s: %w", what, syscall.Errno(-result))
}

// The form of the file. All that is known when it is made lies at fixed addresses, so nothing is relocated.
const (
	word = 8

	base       = 0x400000   // what is executed, from the beginning of the file
	dataOffset = 0x200      // what the calls point to
	dataAt     = 0x10000200 // its address, which is congruent to the offset for every size of pages

	// The data begin with numbers that the code knows by their place: see code.
	tableIn   = 0 // the address of the calls
	reportsIn = 1 // that of the calls when one has failed
	reportIn  = 2 // the report: its result, and the address of its entry
	noneIn    = 4 // where results go that nobody wants
	headSize  = 5 * word

	entrySize = 9 * word // number, address of the first argument, five arguments, where the result goes, whether it may fail
)

// table returns the address of the calls, behind the data.
func (p *Program) table() uint64 { return dataAt + headSize + uint64(len(p.data)) }

// finish returns the program for a processor as an ELF file, or nil for a processor that there is no code for. Why a call has failed is written to the descriptor
// says. Nothing is added to it afterwards.
func (p *Program) finish(processor string, says int) []byte {
	of, ok := code[processor]
	if !ok {
		return nil
	}
	reports := uint64(len(p.calls))
	p.Call(Call{Number: of.write, Args: [6]uint64{uint64(says), dataAt + reportIn*word, ReportSize}})
	p.Call(Call{Number: of.exit, Args: [6]uint64{NotRun}})
	head := [headSize / word]uint64{tableIn: p.table(), reportsIn: p.table() + reports*entrySize}
	data := make([]byte, 0, headSize+len(p.data)+len(p.calls)*entrySize)
	for _, v := range head {
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	data = append(data, p.data...)
	for _, c := range p.calls {
		into, may := c.Into, uint64(0)
		if into == 0 {
			into = dataAt + noneIn*word
		}
		if c.What == "" {
			may = 1
		}
		for _, v := range []uint64{uint64(c.Number), c.FirstAt, c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5], into, may} {
			data = binary.LittleEndian.AppendUint64(data, v)
		}
	}
	return append(executable(of.machine, of.code, uint64(len(data))), data...)
}
