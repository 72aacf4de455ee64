package types

import "time"

// SyscallEvent is a syscall, as strace shows it: one that has ended, or one that may take long and has begun.
type SyscallEvent struct {
	Seq      uint64        `json:"seq"`              // position in the event log
	Time     time.Time     `json:"time"`             // when it ended, or began
	PID      PID           `json:"pid"`              // who called; 0 = a person or the kernel
	Syscall  string        `json:"syscall"`          // Spawn, Wait, Open, Read, Write, ...
	Args     string        `json:"args,omitempty"`   // for people, bounded
	Result   string        `json:"result,omitempty"` // for people, bounded
	Err      string        `json:"error,omitempty"`  //
	Duration time.Duration `json:"duration_ns"`      //
	Begun    bool          `json:"begun,omitempty"`  // it has begun; how it ends says another event
	Begin    uint64        `json:"begin,omitempty"`  // of one that has ended: Seq of its begin; 0 = that was not told
}

// LogEntry is one line of an agent's log.
type LogEntry struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	PID      PID       `json:"pid"`
	Category string    `json:"category"` // think, tool, output, warning
	Text     string    `json:"text"`
}
