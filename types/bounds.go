package types

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// UsualTasks is how many OS processes and threads a process has at most if nobody says another number: builds with many jobs and browsers need
// hundreds, and a program that starts itself over and over reaches any number.
const UsualTasks Tasks = 2048

// The least values. With less, a command cannot even be confined: the program that does that has some threads and megabytes itself.
const (
	MinMemory Memory = 16 << 20
	MinTasks  Tasks  = 32
)

// unbounded is the value of a bound of which was said that there is none.
const unbounded = -1

// Bounds limit what all OS processes of a process use together: its commands, MCP servers and agent CLI, and what these start. Its children have
// bounds of their own, which are no larger. The zero value says nothing.
type Bounds struct {
	Memory    Memory `json:"memory,omitempty"`
	Processes Tasks  `json:"processes,omitempty"`
}

// Memory is a bound in bytes, written as ParseSize reads it; "none" or 0 as text says that there is none. 0 = not said, which is none.
type Memory int64

// Tasks is a bound in OS processes and threads, which count alike; "none" or 0 as text says that there is none. 0 = not said, which is UsualTasks.
type Tasks int64

// UnmarshalText reads a bound of at least MinMemory.
func (m *Memory) UnmarshalText(text []byte) error {
	if saysNone(text) {
		*m = unbounded
		return nil
	}
	n, err := ParseSize(string(text))
	if err != nil {
		return err
	}
	if n < int64(MinMemory) {
		return fmt.Errorf("%s is too little memory for a command; write at least 16MiB, or none for no limit", text)
	}
	*m = Memory(n)
	return nil
}

// MarshalText returns what UnmarshalText reads.
func (m Memory) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// String returns the bound as it is written; empty = not said.
func (m Memory) String() string {
	switch {
	case m < 0:
		return "none"
	case m == 0:
		return ""
	}
	return SizeText(int64(m))
}

// UnmarshalText reads a bound of at least MinTasks.
func (t *Tasks) UnmarshalText(text []byte) error {
	if saysNone(text) {
		*t = unbounded
		return nil
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(strings.TrimSpace(string(text)), "_", ""), 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number of processes; write a whole number, such as 512, or none for no limit", text)
	}
	if n < int64(MinTasks) {
		return fmt.Errorf("%s is too few processes and threads for a command; write at least 32, or none for no limit", text)
	}
	*t = Tasks(n)
	return nil
}

// MarshalText returns what UnmarshalText reads.
func (t Tasks) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the bound as it is written; empty = not said.
func (t Tasks) String() string {
	switch {
	case t < 0:
		return "none"
	case t == 0:
		return ""
	}
	return strconv.FormatInt(int64(t), 10)
}

func saysNone(text []byte) bool {
	s := strings.TrimSpace(string(text))
	return s == "0" || strings.EqualFold(s, "none")
}

// IsZero reports whether nothing is said.
func (b Bounds) IsZero() bool { return b == Bounds{} }

// With returns b with what o says in place of what b says.
func (b Bounds) With(o Bounds) Bounds {
	if o.Memory != 0 {
		b.Memory = o.Memory
	}
	if o.Processes != 0 {
		b.Processes = o.Processes
	}
	return b
}

// Meet returns the smaller one of each bound of a and b.
func (b Bounds) Meet(o Bounds) Bounds {
	return Bounds{Memory: Memory(lesser(int64(b.Memory), int64(o.Memory), math.MaxInt64)), Processes: Tasks(lesser(int64(b.Processes), int64(o.Processes), int64(UsualTasks)))}
}

// lesser returns the smaller one of two bounds, of which one that is not said is usual. Of equal ones it is the one that is said.
func lesser(a, b, usual int64) int64 {
	worth := func(n int64) int64 {
		switch n {
		case unbounded:
			return math.MaxInt64
		case 0:
			return usual
		}
		return n
	}
	switch x, y := worth(a), worth(b); {
	case x < y, x == y && a != 0:
		return a
	}
	return b
}

// Held returns the bounds that are to be enforced; 0 = none.
func (b Bounds) Held() Bounds {
	if b.Processes == 0 {
		b.Processes = UsualTasks
	}
	return Bounds{max(0, b.Memory), max(0, b.Processes)}
}

// Asked returns the bounds that somebody has set, and which are therefore not given up silently; 0 = not set, or set to none.
func (b Bounds) Asked() Bounds { return Bounds{max(0, b.Memory), max(0, b.Processes)} }
