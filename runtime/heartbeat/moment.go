package heartbeat

import (
	"time"

	"golang.org/x/sys/unix"
)

// moment is a point in time by two clocks, of which neither is the one on the wall: Go's, which stands still
// while the host sleeps, and the system's, which does not.
type moment struct {
	time time.Time
	boot time.Duration
}

// now reads the clocks, or the one that a configuration has instead.
func (c *Config) now() moment {
	if c.Now != nil {
		return moment{time: c.Now()}
	}
	m := moment{time: time.Now()}
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) == nil {
		m.boot = time.Duration(ts.Nano())
	}
	return m
}

// since returns how long ago a moment was, by the clock that says more.
func (m moment) since(earlier moment) time.Duration {
	return max(m.time.Sub(earlier.time), m.boot-earlier.boot)
}
