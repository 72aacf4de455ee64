package agent

import (
	"fmt"
	"strconv"
	"time"
)

// Off is the Duration that is written "0": there is no such limit.
const Off Duration = -1

// Or returns the duration, 0 if it is Off, and otherwise if it was not said.
func (d Duration) Or(otherwise time.Duration) time.Duration {
	switch d {
	case 0:
		return otherwise
	case Off:
		return 0
	}
	return time.Duration(d)
}

// String returns the form that UnmarshalText reads; "" if it was not said.
func (d Duration) String() string {
	switch d {
	case 0:
		return ""
	case Off:
		return "0"
	}
	return time.Duration(d).String()
}

// MarshalText returns String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads "5m", "1h30m", "0" or "".
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		if _, number := strconv.ParseFloat(s, 64); number == nil {
			return fmt.Errorf("%s has no unit; write %ss or %sm, for example", s, s, s)
		}
		return fmt.Errorf("%q is not a duration; write it like 30s, 5m or 1h", s)
	}
	switch {
	case v < 0:
		return fmt.Errorf("%s is negative; 0 means no limit", s)
	case v == 0:
		*d = Off
	default:
		*d = Duration(v)
	}
	return nil
}
