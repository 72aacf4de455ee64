package trace

import "time"

// tiny is a difference that comes from measuring at two places, not from a clock that was set.
const tiny = 50 * time.Millisecond

// clock turns the times of records into times that never go back. What the records have measured, such as
// how long a call took, a clock that was set cannot change.
type clock struct {
	now   time.Time     // the latest time that was given out
	shift time.Duration // what is added to what is read
}

// at returns the time of a record that was read as raw: not before what came before it.
func (c *clock) at(raw time.Time) time.Time { return c.behind(raw, 0) }

// behind is at for a record that ends what took so long: if the clock was set back meanwhile, it took no less.
func (c *clock) behind(raw time.Time, took time.Duration) time.Time {
	t := raw.Round(0).Add(c.shift)
	if back := c.now.Sub(t); back > tiny {
		c.shift += back + took
		t = c.now.Add(took)
	} else if back > 0 {
		t = c.now
	}
	c.now = t
	return t
}

// past returns the time of a moment before the latest record, which may have been read before the clock was
// set: not after now, and not before floor.
func (c *clock) past(raw, floor time.Time) time.Time {
	t := raw.Round(0).Add(c.shift)
	if t.After(c.now) {
		t = c.now
	}
	return later(t, floor)
}

// least moves the clock on to t if it stands before that.
func (c *clock) least(t time.Time) {
	if ahead := t.Sub(c.now); ahead > 0 {
		if ahead > tiny {
			c.shift += ahead
		}
		c.now = t
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
