package llm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rnix/internal/pattern"
	"rnix/types"
)

// claudeTurn is what the lines of one answer have told so far.
type claudeTurn struct {
	tools bool // the answer is an action: its text is not shown before it is complete
	emit  func(StreamEvent)
	sent  int // bytes of the question

	heard     bool // some line of JSON came
	began     bool // the model has begun to answer
	waiting   bool // a wait was announced
	model     string
	text      string // of the model's last message
	reasoning strings.Builder
	reset     time.Time // when the limit of the account is lifted, if it was said
	stray     string    // the last line that is no JSON
	result    *claudeResult
}

// claudeLine is a line of any type, as far as it is of use.
type claudeLine struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"` // a list of blocks
	} `json:"message"`
	Event struct {
		Type    string `json:"type"`
		Message struct {
			Model string `json:"model"`
		} `json:"message"`
		Delta struct {
			Text     string `json:"text"`
			Thinking string `json:"thinking"`
		} `json:"delta"`
	} `json:"event"`
	RetryDelayMs float64 `json:"retry_delay_ms"`
	ErrorStatus  int     `json:"error_status"`
	RateLimit    struct {
		Status   string  `json:"status"`
		ResetsAt float64 `json:"resetsAt"` // in seconds
	} `json:"rate_limit_info"`
}

// line takes in one line of output. It reports whether the line is a sign that the answer is on its
// way. Types that are not known are passed over: new ones turn up between versions.
func (t *claudeTurn) line(b []byte) bool {
	var l claudeLine
	if err := json.Unmarshal(b, &l); err != nil && l.Type == "" {
		t.stray = shortened(oneLine(strings.ToValidUTF8(string(b), "\uFFFD")), 300)
		return false
	}
	t.heard = true
	switch l.Type {
	case "result":
		var r claudeResult
		if json.Unmarshal(b, &r) != nil { // a field of another type: take what there is
			_ = json.Unmarshal(b, &struct {
				IsError *bool   `json:"is_error"`
				Result  *string `json:"result"`
			}{&r.IsError, &r.Result})
		}
		t.wait(time.Time{})
		t.result = &r
	case "stream_event":
		t.wait(time.Time{})
		t.event(&l)
	case "assistant":
		t.began = true
		if l.Message.Model != "" && l.Message.Model != "<synthetic>" {
			t.model = l.Message.Model
		}
		var blocks []struct{ Type, Text string }
		if json.Unmarshal(l.Message.Content, &blocks) == nil { // one line for each block
			for _, b := range blocks {
				if b.Type == "text" && b.Text != "" {
					t.text = b.Text
				}
			}
		}
	case "rate_limit_event":
		if l.RateLimit.Status == "rejected" && l.RateLimit.ResetsAt > 0 && l.RateLimit.ResetsAt < 1e11 {
			t.reset = time.Unix(int64(l.RateLimit.ResetsAt), 0)
		}
		return false
	case "system":
		if l.Subtype == "api_retry" && l.RetryDelayMs >= 0 && l.RetryDelayMs < 1e9 {
			t.wait(time.Now().Add(time.Duration(l.RetryDelayMs) * time.Millisecond))
		}
		return t.began
	default:
		return t.began
	}
	return true
}

// event takes in a piece of the answer.
func (t *claudeTurn) event(l *claudeLine) {
	t.began = true
	if m := l.Event.Message.Model; m != "" {
		t.model = m
	}
	if s := l.Event.Delta.Thinking; s != "" {
		t.reasoning.WriteString(s)
		t.emit(StreamEvent{Type: EventReasoning, Text: s})
	}
	if s := l.Event.Delta.Text; s != "" && !t.tools {
		t.emit(StreamEvent{Type: EventText, Text: s})
	}
}

// wait announces that the CLI itself waits before it tries again, or that this is over.
func (t *claudeTurn) wait(until time.Time) {
	if t.waiting || !until.IsZero() {
		text := ""
		if !until.IsZero() {
			text = "its own next try"
		}
		t.emit(StreamEvent{Type: EventWait, Until: until, Text: text})
	}
	t.waiting = !until.IsZero()
}

var (
	limitReset  = pattern.New(`\|(\d{10})\b`)
	loginWords  = pattern.New(`(?i)not logged in|please run /login|invalid api key|invalid bearer token|oauth token|authenticat|token has expired`)
	limitWords  = pattern.New(`(?i)usage limit|rate limit|hit your (session |weekly |opus |sonnet )?limit|too many requests`)
	brokenWords = pattern.New(`(?i)connection (to .{1,40} )?(was )?(refused|error|reset|closed|lost)|truncated|econn|enotfound|etimedout|socket|timed out|fetch failed|network|json parse error|overloaded|unable to connect`)
)

// problem classifies a result that is an error.
func (t *claudeTurn) problem() (types.ErrCode, string, *RateLimit) {
	r := t.result
	text := r.Result
	if len(r.Errors) > 0 {
		text = strings.TrimSpace(text + " " + strings.Join(r.Errors, "; "))
	}
	if text == "" {
		text = "the program reports " + strings.TrimSpace(r.Subtype+" "+r.Terminal)
	}
	text = shortened(oneLine(text), 1000)
	code, told := ClaudeFault(r.Status, r.Terminal, text)
	if code == types.ErrRateLimited {
		return code, told, &RateLimit{RetryAfter: t.retryAfter(text), Message: text}
	}
	return code, told, nil
}

// ClaudeFault classifies what a result line of claude complains of: the HTTP status that it names, 0 for
// none, its terminal_reason, and its text, which is returned with what a person can do.
func ClaudeFault(status int, terminal, text string) (types.ErrCode, string) {
	switch s := status; {
	case s == http.StatusTooManyRequests, s == 0 && limitWords().MatchString(text):
		return types.ErrRateLimited, text
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == 0 && loginWords().MatchString(text):
		return types.ErrAuth, "claude is not logged in, or its key is refused: run claude and log in, or set ANTHROPIC_API_KEY; it says: " + text
	case strings.Contains(strings.ToLower(text), "credit balance"), s == http.StatusPaymentRequired:
		return types.ErrAuth, "the account has no credit: " + text
	case s == http.StatusRequestEntityTooLarge, terminal == "prompt_too_long", tooLong(strings.ToLower(text)):
		return types.ErrInvalid, "prompt is too long: " + text
	case s == http.StatusNotFound:
		return types.ErrNotFound, "the model cannot be used: " + text
	case s >= 500, s == http.StatusRequestTimeout, s == http.StatusConflict:
		return types.ErrUnavailable, text
	case s >= 400:
		return types.ErrInvalid, text
	case s == 0 && brokenWords().MatchString(text), terminal == "aborted_streaming":
		return types.ErrUnavailable, text
	}
	return types.ErrDriver, text
}

// retryAfter is how long the account has to wait, if that was said.
func (t *claudeTurn) retryAfter(text string) time.Duration {
	at := t.reset
	if m := limitReset().FindStringSubmatch(text); m != nil && at.IsZero() {
		n, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
		at = time.Unix(n, 0)
	}
	if at.IsZero() {
		return 0
	}
	return min(max(time.Until(at), 0), longest)
}
