package llm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm"
	"rnix/types"
)

// A key and a conversation go where base_url says, and nowhere else: a server that sends them on is
// refused before anybody else hears of them.
func TestConversationIsSentToNoOtherHost(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var strangers atomic.Int64
		stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
		defer stranger.Close()
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, stranger.URL+r.URL.Path, status)
		}))
		defer host.Close()
		t.Setenv("TEST_LLM_KEY", "sk-canary")
		cfg := llm.HTTPConfig{BaseURL: host.URL, APIKeyEnv: "TEST_LLM_KEY", Model: "m"}
		for _, open := range []func() (llm.LLMDriver, error){
			func() (llm.LLMDriver, error) { return llm.NewAnthropic(cfg) },
			func() (llm.LLMDriver, error) { return llm.NewOpenAI(cfg) },
		} {
			d, err := open()
			if err != nil {
				t.Fatal(err)
			}
			_, err = d.Call(t.Context(), llm.LLMRequest{Intent: "hi"})
			if types.CodeOf(err) != types.ErrDriver || !strings.Contains(err.Error(), "check base_url") || strings.Contains(err.Error(), "canary") {
				t.Errorf("%d: %v", status, err)
			}
			if c, ok := d.(interface{ Close() error }); ok {
				_ = c.Close()
			}
		}
		if n := strangers.Load(); n > 0 {
			t.Errorf("%d: %d requests went to another host", status, n)
		}
	}
}
