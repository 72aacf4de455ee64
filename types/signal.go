package types

import (
	"fmt"
	"strconv"
	"strings"
)

// Signal is one of the five signals of the kernel. The numbers are the specification's own, not
// POSIX's; ParseSignal maps the POSIX numbers that people type out of habit.
type Signal int

// The signals. SIGKILL can be neither blocked nor handled.
const (
	SIGTERM   Signal = 1 // terminate: the process ends before its next action
	SIGKILL   Signal = 2 // end at once
	SIGINT    Signal = 3 // interrupt
	SIGPAUSE  Signal = 4 // shut the gate of the reasoning loop
	SIGRESUME Signal = 5 // open it again
)

var signalNames = [...]string{
	SIGTERM: "SIGTERM", SIGKILL: "SIGKILL", SIGINT: "SIGINT", SIGPAUSE: "SIGPAUSE", SIGRESUME: "SIGRESUME",
}

// posix maps the numbers of signal(7) on Linux to ours.
var posix = map[int]Signal{1: SIGTERM, 2: SIGINT, 9: SIGKILL, 15: SIGTERM, 18: SIGRESUME, 19: SIGPAUSE, 20: SIGPAUSE}

// aliases are names of POSIX signals with the same meaning here.
var aliases = map[string]Signal{"STOP": SIGPAUSE, "TSTP": SIGPAUSE, "CONT": SIGRESUME, "HUP": SIGTERM}

// Valid reports whether s is one of the five signals.
func (s Signal) Valid() bool { return s >= SIGTERM && s <= SIGRESUME }

// Blockable reports whether a process may block or handle s.
func (s Signal) Blockable() bool { return s.Valid() && s != SIGKILL }

// String returns the name with its SIG prefix.
func (s Signal) String() string {
	if s.Valid() {
		return signalNames[s]
	}
	return fmt.Sprintf("signal(%d)", int(s))
}

// MarshalText writes the name.
func (s Signal) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSignal reads.
func (s *Signal) UnmarshalText(b []byte) (err error) { *s, err = ParseSignal(string(b)); return err }

// ParseSignal reads a signal as a person writes it: TERM, SIGTERM, -TERM, term, or a POSIX number
// such as 9, 15 or -9. STOP and TSTP mean SIGPAUSE, CONT means SIGRESUME.
func ParseSignal(text string) (Signal, error) {
	name := strings.TrimPrefix(strings.ToUpper(strings.TrimPrefix(text, "-")), "SIG")
	if n, err := strconv.Atoi(name); err == nil {
		if s, ok := posix[n]; ok {
			return s, nil
		}
	}
	for s := SIGTERM; s.Valid(); s++ {
		if s.String() == "SIG"+name {
			return s, nil
		}
	}
	if s, ok := aliases[name]; ok {
		return s, nil
	}
	return 0, fmt.Errorf("unknown signal %q: use TERM, KILL, INT, PAUSE or RESUME (or 15, 9, 2, 19, 18)", text)
}
