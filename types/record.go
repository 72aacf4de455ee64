package types

import "time"

// SyscallEvent is one operation of a process, as strace shows it.
type SyscallEvent struct {
	Seq      uint64        `json:"seq"`              // position in the event log
	Time     time.Time     `json:"time"`             // when it ended
	PID      PID           `json:"pid"`              //
	Syscall  string        `json:"syscall"`          // Spawn, Open, Read, Write, ReasonStep, ...
	Args     string        `json:"args,omitempty"`   // for people, bounded
	Result   string        `json:"result,omitempty"` // for people, bounded
	Err      string        `json:"error,omitempty"`  //
	Duration time.Duration `json:"duration_ns"`      //
}

// LogEntry is one line of an agent's log.
type LogEntry struct {
	Seq      uint64    `json:"seq"`
	Time     time.Time `json:"time"`
	PID      PID       `json:"pid"`
	Category string    `json:"category"` // think, tool, output, warning
	Text     string    `json:"text"`
}
