package deliver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cenkalti/backoff/v5"

	"rnix/types"
)

// Verdict says what becomes of a request.
type Verdict int

// The verdicts.
const (
	Taken   Verdict = iota // 2xx
	Again                  // it may succeed later: network, 401, 408, 425, 429, 5xx
	Refused                // it never will, as it is: any other status
	Fenced                 // 409: it will not under this fencing token
)

// Judge returns the verdict for a status.
func Judge(status int) Verdict {
	switch {
	case status >= 200 && status < 300:
		return Taken
	case status == http.StatusConflict:
		return Fenced
	case status == http.StatusUnauthorized, status == http.StatusRequestTimeout, status == http.StatusTooEarly,
		status == http.StatusTooManyRequests, status >= 500 && status != http.StatusNotImplemented:
		return Again
	}
	return Refused
}

// Failure is why an attempt was no success.
type Failure struct {
	Status  int // 0 = there was no answer
	Verdict Verdict
	After   time.Duration // how long the platform asks to wait; 0 = it does not
	Text    string        // the beginning of what the platform said, on one line
	Token   uint64        // under which the request was made
	Err     error         // what broke; may be nil
}

// Error says the status and what the platform said.
func (f *Failure) Error() string {
	var b strings.Builder
	switch {
	case f.Status == http.StatusUnauthorized:
		b.WriteString("the platform does not accept the token (401): set a new one")
	case f.Status == http.StatusForbidden:
		b.WriteString("the token may not do this (403): use one of this session's platform")
	case f.Status >= 300 && f.Status < 400:
		fmt.Fprintf(&b, "the platform points elsewhere (%d): set the base URL to where it is", f.Status)
	case f.Verdict == Fenced:
		fmt.Fprintf(&b, "%v (409)", ErrFenced)
	case f.Status != 0:
		fmt.Fprintf(&b, "the platform answered %d %s", f.Status, http.StatusText(f.Status))
	}
	for _, part := range []string{f.Text, errText(f.Err)} {
		if part != "" {
			if b.Len() > 0 {
				b.WriteString(": ")
			}
			b.WriteString(part)
		}
	}
	return b.String()
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Unwrap returns what broke.
func (f *Failure) Unwrap() error { return f.Err }

// Is makes a fenced failure match ErrFenced.
func (f *Failure) Is(target error) bool { return target == ErrFenced && f.Verdict == Fenced }

// fail gives a failure the code that its status has.
func fail(call Call, f *Failure) error {
	code := types.ErrUnavailable
	switch {
	case f.Verdict == Fenced:
		code = types.ErrConflict
	case f.Status == http.StatusUnauthorized, f.Status == http.StatusForbidden:
		code = types.ErrAuth
	case f.Status == http.StatusNotFound:
		code = types.ErrNotFound
	case f.Status == http.StatusTooManyRequests:
		code = types.ErrRateLimited
	case f.Verdict == Refused:
		code = types.ErrInvalid
	}
	return types.Errorf(code, "Post", call.Endpoint, "%w", f)
}

// shown returns the beginning of a body, or of the text of its "error", as one line without control characters.
func shown(body []byte) string {
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		body = []byte(said.Error)
	}
	text := strings.ToValidUTF8(string(body[:min(len(body), 4*maxShown)]), "")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(text); len(r) > maxShown {
		text = string(r[:maxShown]) + "…"
	}
	return text
}

// retryAfter reads the header of that name: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// Retry says how often and how patiently to ask.
type Retry struct {
	Attempts int           // 0 = until the context ends
	First    time.Duration // the pause after the first attempt; it doubles
	Longest  time.Duration // that a pause becomes by doubling; 0 = no bound
	Jitter   float64       // each pause is up to this part longer or shorter, such as 0.2; 0 = exact
	Patience time.Duration // the longest time that the platform may ask for between attempts; 0 = 5 min
}

// Pauses counts the pauses of one row of attempts.
type Pauses struct {
	rule Retry
	b    *backoff.ExponentialBackOff
	made int
}

// Pauses begins a row of attempts.
func (r Retry) Pauses() *Pauses {
	if r.Patience <= 0 {
		r.Patience = 5 * time.Minute
	}
	longest := r.Longest
	if longest <= 0 {
		longest = 1 << 50
	}
	return &Pauses{rule: r, b: &backoff.ExponentialBackOff{InitialInterval: r.First, RandomizationFactor: r.Jitter, Multiplier: 2, MaxInterval: longest}}
}

// Next returns how long to wait before the next attempt, after one that failed with f; false means that
// there are no more. What the platform asks for is obeyed if it is longer.
func (p *Pauses) Next(f *Failure) (time.Duration, bool) {
	p.made++
	if p.rule.Attempts > 0 && p.made >= p.rule.Attempts {
		return 0, false
	}
	d := p.b.NextBackOff()
	if f != nil && f.After > d {
		if f.After > p.rule.Patience {
			if p.rule.Attempts > 0 {
				return 0, false // not in this row
			}
			return p.rule.Patience, true
		}
		d = f.After
	}
	return d, true
}

// Made returns how many attempts have failed.
func (p *Pauses) Made() int { return p.made }

// Reset begins the row anew.
func (p *Pauses) Reset() {
	p.made = 0
	p.b.Reset()
}

// Wait sleeps as the client's configuration says.
func (c *Client) Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return c.cfg.Sleep(ctx, d)
}
