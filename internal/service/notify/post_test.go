package notify

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rnix/internal/config"
)

func TestPostSendsJSONAndFollowsNothing(t *testing.T) {
	var got Notice
	var token string
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token = r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer s.Close()
	c := &config.Notify{Post: config.Value[string]{V: s.URL + "/secret-path"}, TokenEnv: config.Value[string]{V: "T"}}
	value := "abc"
	d := &Service{Lookup: func(name string) (string, bool) { return value, name == "T" && value != "" }}
	n := NoticeOf([]Item{{Kind: config.NoticeAsk, PID: 3, Text: "shell ls", Ask: "1"}})
	tell := d.ways(c)[0].tell
	if err := tell(t.Context(), &n); err != nil || token != "Bearer abc" || got.Items[0].Ask != "1" || got.Title != n.Title {
		t.Errorf("%v, token %q, got %+v", err, token, got)
	}
	status = http.StatusFound
	if err := tell(t.Context(), &n); err == nil || !strings.Contains(err.Error(), "302") {
		t.Errorf("a redirect: %v", err)
	}
	s.Close()
	if err := tell(t.Context(), &n); err == nil || strings.Contains(err.Error(), "secret-path") {
		t.Errorf("nobody listens: %v", err)
	}
	value = ""
	if err := tell(t.Context(), &n); err == nil || !strings.Contains(err.Error(), "the variable is not set") {
		t.Errorf("without its token: %v", err)
	}
}
