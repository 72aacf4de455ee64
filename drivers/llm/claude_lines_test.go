package llm

import (
	"testing"
)

func FuzzClaudeLines(f *testing.F) {
	f.Add(`{"type":"system","subtype":"api_retry","retry_delay_ms":539,"error_status":529}`, `{"type":"result","is_error":true,"api_error_status":429,"result":"limit|1999999999"}`)
	f.Add(`{"type":"stream_event","event":{"delta":{"text":"a","thinking":"b"}}}`, `{"type":"result","result":7,"is_error":true}`)
	f.Add(`{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"x"}]}}`, `{"type":"result","subtype":"error_max_turns","is_error":true}`)
	f.Add(`no json`, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1e12}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		turn := claudeTurn{emit: func(StreamEvent) {}}
		turn.line([]byte(a))
		turn.line([]byte(b))
		if turn.result == nil {
			return
		}
		code, text, limit := turn.problem()
		if code == "" || text == "" || limit != nil && limit.RetryAfter < 0 {
			t.Errorf("%q %q %+v", code, text, limit)
		}
		u, known := turn.result.Usage.tokens()
		if known && (u.Input < 0 || u.Output < 0 || u.CacheRead < 0 || u.CacheWrite < 0) {
			t.Errorf("usage %+v", u)
		}
	})
}
