package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/runtime/controlplane"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "a-secret-of-24-characters"

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
)

// open opens a control plane on a disk, or in a directory of the test's own.
func open(t *testing.T, disk durable.FS, change func(*controlplane.Options)) *controlplane.Server {
	t.Helper()
	opt := controlplane.Options{Dir: "/data/cp", FS: disk, Logger: quiet}
	if disk == nil {
		opt.Dir = filepath.Join(t.TempDir(), "cp")
	}
	if change != nil {
		change(&opt)
	}
	s, err := controlplane.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddToken(secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask makes a request under a fencing token (0 = none) and returns status and answer.
func ask(s http.Handler, method, path string, token uint64, body string) (int, map[string]any) {
	r := httptest.NewRequest(method, "/api/sessions"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+secret)
	if token > 0 {
		r.Header.Set("X-Fencing-Token", fmt.Sprint(token))
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var answer map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &answer)
	return w.Code, answer
}

// want asks and fails unless the status is that one; it returns the answer as text.
func want(t *testing.T, s http.Handler, status int, method, path string, token uint64, body string) string {
	t.Helper()
	code, answer := ask(s, method, path, token, body)
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if code != status {
		t.Errorf("%s %s under %d: %d %s; want %d", method, path, token, code, text, status)
	}
	return string(text)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %s", text, p)
		}
	}
}

func TestASessionHasOneOwnerAndAnOldTokenWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, faultfs.New("/data"), nil)
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a","claimId":"1"}`), `"fencingToken":1`, `"owner":"a"`, `"ttlMs":60000`)
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a","claimId":"1"}`), `"fencingToken":1`) // asked again
		contains(t, want(t, s, 409, "POST", "/x/claim", 0, `{"workerId":"b"}`), `CONFLICT`, `\"a\" has the session`)
		contains(t, want(t, s, 200, "GET", "/x/ownership", 0, ""), `"owned":true`, `"owner":"a"`)
		want(t, s, 200, "POST", "/x/activity", 1, `{"activity":{"type":"thought","content":"hi","eventId":"e1"}}`)
		time.Sleep(59 * time.Second)
		contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{"workerId":"a"}`), `"refreshed":true`, `"fencingToken":1`)
		time.Sleep(59 * time.Second)
		want(t, s, 409, "POST", "/x/claim", 0, `{"workerId":"b"}`)
		time.Sleep(2 * time.Second)
		contains(t, want(t, s, 200, "GET", "/x/ownership", 0, ""), `"owned":false`)
		want(t, s, 200, "POST", "/x/activity", 1, `{"activity":{"type":"thought","eventId":"e2"}}`) // run out, and nobody else's
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"b"}`), `"fencingToken":2`)
		for _, path := range []string{"activity", "token-delta", "status", "completion", "step-heartbeat", "release"} {
			body := `{"workerId":"a","status":"failed","frames":[{}],"activity":{"type":"x","eventId":"e3"}}`
			contains(t, want(t, s, 409, "POST", "/x/"+path, 1, body), `CONFLICT`, `1 is an old one, 2 is in force`)
			want(t, s, 409, "POST", "/x/"+path, 0, body)
		}
		contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{"workerId":"a"}`), `"refreshed":false`)
		contains(t, want(t, s, 409, "POST", "/x/claim", 0, `{"workerId":"a","claimId":"1"}`), `CONFLICT`) // it comes late
		want(t, s, 200, "POST", "/x/release", 2, `{"workerId":"b"}`)
		want(t, s, 409, "POST", "/x/activity", 2, `{"activity":{"type":"thought"}}`)
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`), `"fencingToken":3`)
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`), `"fencingToken":4`) // the same worker, started anew
	})
}

func TestAClientWithoutTokensIsKnownByItsWorker(t *testing.T) {
	s := open(t, nil, nil)
	contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 0, `{"workerId":"a","issueId":"i"}`), `"refreshed":true`, `"fencingToken":1`)
	contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 0, `{"workerId":"b"}`), `"refreshed":false`)
	want(t, s, 200, "POST", "/x/status", 0, `{"workerId":"a","status":"running"}`)
	want(t, s, 409, "POST", "/x/status", 0, `{"workerId":"b","status":"running"}`)
	want(t, s, 409, "POST", "/x/token-delta", 0, `{"turnId":"t","frames":[{"index":0}]}`)
}

func TestWhatIsToldTwiceIsStoredOnce(t *testing.T) {
	s := open(t, nil, nil)
	want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`)
	batch := `{"activities":[{"type":"thought","eventId":"e1"},{"type":"action","eventId":"e2"},{"type":"action","eventId":"e1"}]}`
	contains(t, want(t, s, 200, "POST", "/x/activity", 1, batch), `"accepted":2`, `"duplicates":1`, `"maxBatch":100`)
	contains(t, want(t, s, 200, "POST", "/x/activity", 1, batch), `"accepted":0`, `"duplicates":3`)
	want(t, s, 200, "POST", "/x/token-delta", 1, `{"turnId":"t1","eventId":"e1","frames":[{"index":0,"text":"hi","done":true}]}`)
	want(t, s, 200, "POST", "/x/token-delta", 1, `{"turnId":"t1","eventId":"e1","frames":[{"index":0,"text":"hi","done":true}]}`)
	want(t, s, 200, "POST", "/x/completion", 1, `{"eventId":"c","summary":"done"}`)
	want(t, s, 200, "POST", "/x/status", 1, `{"eventId":"s","status":"completed"}`)
	want(t, s, 200, "POST", "/x/release", 1, `{}`)
	contains(t, want(t, s, 200, "POST", "/x/status", 1, `{"eventId":"s","status":"completed"}`), `"duplicates":1`) // its answer was lost
	page := want(t, s, 200, "GET", "/x/activity?limit=1", 0, "")
	contains(t, page, `"eventId":"e1"`, `"next":2`, `"token":1`)
	page = want(t, s, 200, "GET", "/x/activity?after=2", 0, "")
	contains(t, page, `"eventId":"e2"`, `"next":3`)
	if strings.Contains(page, `"e1"`) {
		t.Errorf("the second page is %s", page)
	}
	contains(t, want(t, s, 200, "GET", "/x", 0, ""), `"activity":2`, `"token-delta":1`, `"completion":{`, `"summary":"done"`, `"status":"completed"`)
	contains(t, want(t, s, 200, "GET", "", 0, ""), `"sessions":["x"]`)
	contains(t, want(t, s, 200, "GET", "/x/events?limit=1000", 0, ""), `"kind":"claim"`, `"kind":"release"`, `"next":7`)
}

func TestAMessageIsOfferedUntilItIsAcknowledgedOrDead(t *testing.T) {
	s := open(t, nil, nil)
	want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`)
	want(t, s, 200, "POST", "/x/inject", 0, `{"deliveryId":"d1","text":"one","kind":"user","turnId":"t"}`)
	want(t, s, 200, "POST", "/x/inject", 0, `{"deliveryId":"d1","text":"one"}`) // sent again
	contains(t, want(t, s, 200, "POST", "/x/inject", 0, `{"text":"two"}`), `"deliveryId":"dlv_`)
	for range 2 {
		contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{}`), `"deliveryId":"d1"`, `"text":"one"`, `"kind":"user"`, `"turnId":"t"`)
	}
	second := want(t, s, 200, "POST", "/x/lock-refresh", 1, `{"ackedInject":"d1"}`)
	contains(t, second, `"text":"two"`)
	id := second[strings.Index(second, "dlv_"):]
	id = id[:strings.IndexByte(id, '"')]
	dead := want(t, s, 200, "POST", "/x/lock-refresh", 1, `{"ackedInject":"d1","deadLetteredInjects":[{"deliveryId":"`+id+`","reason":"no stdin"},{"deliveryId":"other"}]}`)
	if strings.Contains(dead, "inject") {
		t.Errorf("a dead message is offered: %s", dead)
	}
	contains(t, want(t, s, 200, "GET", "/x", 0, ""), `"state":"dead"`, `"reason":"no stdin"`)
	want(t, s, 200, "POST", "/x/inject/"+id+"/requeue", 0, "")
	contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{}`), `"text":"two"`)
	want(t, s, 404, "POST", "/x/inject/nope/requeue", 0, "")
	want(t, s, 200, "POST", "/x/inject", 0, `{"deliveryId":"d1","text":"one"}`) // acknowledged: it does not come again
	want(t, s, 200, "POST", "/x/stop", 0, "")
	stopped := want(t, s, 200, "POST", "/x/lock-refresh", 1, `{}`)
	if !strings.Contains(stopped, `"stop":true`) || strings.Contains(stopped, "inject") {
		t.Errorf("after stop: %s", stopped)
	}
	want(t, s, 200, "POST", "/x/stop", 0, `{"stop":false}`)
	contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{}`), `"text":"two"`)
}

func TestWithoutItsTokenNothingIsServed(t *testing.T) {
	s := open(t, nil, nil)
	for _, header := range []string{"", "Bearer", "Bearer wrong", "Basic " + secret, "Bearer " + secret + "x"} {
		r := httptest.NewRequest("GET", "/api/sessions", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %d", header, w.Code)
		}
	}
	for _, token := range []string{"", "short", "has a blank in the middle", strings.Repeat("x", 5000)} {
		if err := s.AddToken(token); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", token, err)
		}
	}
}

func TestBadRequestsAreRefusedAndNamed(t *testing.T) {
	s := open(t, nil, func(o *controlplane.Options) { o.MaxSessions = 2 })
	want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`)
	for _, tt := range []struct {
		status             int
		method, path, body string
		text               string
	}{
		{400, "POST", "/x/claim", `{}`, "workerId"},
		{400, "POST", "/x/claim", `{`, "JSON"},
		{400, "POST", "/x/claim", `[]`, "JSON"},
		{404, "POST", "/nobody/activity", `{"activity":{"type":"x"}}`, "a claim makes it"},
		{404, "GET", "/nobody", "", "no such session"},
		{404, "GET", "/x/nothing", "", "there are events"},
		{404, "PUT", "/x", "", "nothing is served here"},
		{400, "GET", "/x/activity?after=-1", "", "is not a number"},
		{400, "GET", "/x/activity?limit=5000", "", "up to 1000"},
		{400, "POST", "/x/activity", `{}`, "0 activities"},
		{400, "POST", "/x/activity", `{"activity":{"content":"no type"}}`, "activity 1"},
		{400, "POST", "/x/activity", `{"activity":"text"}`, "activity 1"},
		{400, "POST", "/x/activity", `{"activities":[` + strings.Repeat(`{"type":"x"},`, 100) + `{"type":"x"}]}`, "101 activities"},
		{413, "POST", "/x/activity", `{"activity":{"type":"` + strings.Repeat("x", 1<<20) + `"}}`, "too large"},
		{400, "POST", "/x/status", `{"workerId":"a"}`, "no status"},
		{400, "POST", "/x/token-delta", `{"turnId":"x"}`, "no frames"},
		{400, "POST", "/x/inject", `{}`, "text"},
		{400, "POST", "/" + strings.Repeat("y", 257) + "/claim", `{"workerId":"a"}`, "256"},
		{400, "POST", "/%00/claim", `{"workerId":"a"}`, "printable"},
		{200, "POST", "/a%2Fb/claim", `{"workerId":"a"}`, "owner"},
		{507, "POST", "/third/claim", `{"workerId":"a"}`, "limit"},
	} {
		contains(t, want(t, s, tt.status, tt.method, tt.path, 0, tt.body), tt.text)
	}
	r := httptest.NewRequest("POST", "/api/sessions/x/activity", strings.NewReader("{}"))
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("X-Fencing-Token", "one")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != 400 {
		t.Errorf("a token that is no number: %d", w.Code)
	}
	contains(t, want(t, s, 200, "GET", "", 0, ""), `["a/b","x"]`)
}

func TestAFullSessionSaysSoAndKeepsWhatItHas(t *testing.T) {
	s := open(t, nil, func(o *controlplane.Options) { o.MaxSessionBytes = 2000 })
	want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`)
	code, n := 200, 0
	for ; code == 200 && n < 100; n++ {
		code, _ = ask(s, "POST", "/x/activity", 1, fmt.Sprintf(`{"activity":{"type":"x","eventId":"e%d","content":"%0100d"}}`, n, n))
	}
	if code != 507 || n < 5 {
		t.Errorf("%d after %d", code, n)
	}
	contains(t, want(t, s, 200, "GET", "/x", 0, ""), fmt.Sprintf(`"activity":%d`, n-1))
}

func TestWhatWasAnsweredIsThereAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New("/data")
		s := open(t, disk, func(o *controlplane.Options) { o.MaxOpen = 1 })
		for _, id := range []string{"x", "y", "z"} { // more than may be open
			want(t, s, 200, "POST", "/"+id+"/claim", 0, `{"workerId":"a"}`)
			want(t, s, 200, "POST", "/"+id+"/activity", 1, `{"activity":{"type":"t","eventId":"e"}}`)
			want(t, s, 200, "POST", "/"+id+"/inject", 0, `{"deliveryId":"d","text":"hi"}`)
		}
		contains(t, want(t, s, 200, "POST", "/x/activity", 1, `{"activity":{"type":"t","eventId":"e"}}`), `"duplicates":1`)
		time.Sleep(50 * time.Second)
		disk.Crash(0)
		s.Close()
		s = open(t, disk, nil)
		contains(t, want(t, s, 409, "POST", "/x/claim", 0, `{"workerId":"b"}`), `under fencing token 1`)
		contains(t, want(t, s, 200, "POST", "/x/activity", 1, `{"activity":{"type":"t","eventId":"e"}}`), `"duplicates":1`)
		contains(t, want(t, s, 200, "POST", "/x/lock-refresh", 1, `{}`), `"text":"hi"`)
		time.Sleep(61 * time.Second)
		contains(t, want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"b"}`), `"fencingToken":2`)
	})
}

func TestADiskThatFailsIsNoSuccessAndIsLookedAtAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New("/data")
		s := open(t, disk, nil)
		want(t, s, 200, "POST", "/x/claim", 0, `{"workerId":"a"}`)
		disk.Fail(faultfs.Fault{At: 1, Err: io.ErrShortWrite, Persistent: true})
		contains(t, want(t, s, 503, "POST", "/x/activity", 1, `{"activity":{"type":"t","eventId":"e"}}`), "its log says why")
		disk.Fail(faultfs.Fault{})
		contains(t, want(t, s, 200, "POST", "/x/activity", 1, `{"activity":{"type":"t","eventId":"e"}}`), `"accepted":1`)
	})
}

func TestADirectoryHasOneServer(t *testing.T) {
	dir := t.TempDir()
	s := open(t, nil, func(o *controlplane.Options) { o.Dir = dir })
	if _, err := controlplane.Open(controlplane.Options{Dir: dir}); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("a second server: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
	if err != nil || bytes.Contains(text, []byte(secret)) {
		t.Errorf("tokens.json: %v %s", err, text)
	}
	s.Close()
	want(t, open(t, nil, func(o *controlplane.Options) { o.Dir = dir }), 200, "GET", "", 0, "")
}

func TestManyClaimsAtOnceHaveOneWinner(t *testing.T) {
	s := open(t, nil, nil)
	var all sync.WaitGroup
	won := make(chan string, 20)
	for i := range 20 {
		all.Go(func() {
			if code, a := ask(s, "POST", "/x/claim", 0, fmt.Sprintf(`{"workerId":"w%d"}`, i)); code == 200 {
				won <- fmt.Sprint(a["owner"], a["fencingToken"])
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d have the session", len(won))
	}
}

// crashOp claims, tells and sends; what was answered must be there after any crash.
func crashOp() *faultfs.Op {
	with := func(disk durable.FS, do func(s *controlplane.Server) error) error {
		s, err := controlplane.Open(controlplane.Options{Dir: "/data/cp", FS: disk, Logger: quiet})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.AddToken(secret); err != nil {
			return err
		}
		return do(s)
	}
	post := func(s *controlplane.Server, path string, token uint64, body string) (map[string]any, error) {
		code, a := ask(s, "POST", path, token, body)
		if code != 200 {
			return nil, fmt.Errorf("%s: %d %v", path, code, a)
		}
		return a, nil
	}
	return &faultfs.Op{
		Name:     "control plane",
		Changing: []string{".lock", "tokens.json"},
		Run: func(disk durable.FS, ack func(string)) error {
			return with(disk, func(s *controlplane.Server) error {
				a, err := post(s, "/x/claim", 0, `{"workerId":"a"}`)
				if err != nil {
					return err
				}
				token := uint64(a["fencingToken"].(float64))
				ack(fmt.Sprint("token ", token))
				for i := range 3 {
					id := fmt.Sprint("e", token, "-", i)
					if _, err := post(s, "/x/activity", token, `{"activity":{"type":"t","eventId":"`+id+`"}}`); err != nil {
						return err
					}
					ack("event " + id)
				}
				if _, err := post(s, "/x/inject", 0, fmt.Sprintf(`{"deliveryId":"d%d","text":"hi"}`, token)); err != nil {
					return err
				}
				ack(fmt.Sprint("inject d", token))
				return nil
			})
		},
		Recover: func(disk durable.FS) error {
			return with(disk, func(s *controlplane.Server) error {
				if code, a := ask(s, "GET", "/x", 0, ""); code != 200 && code != 404 {
					return fmt.Errorf("GET: %d %v", code, a)
				}
				return nil
			})
		},
		Check: func(disk durable.FS, acked []string) error {
			return with(disk, func(s *controlplane.Server) error {
				_, page := ask(s, "GET", "/x/events?limit=1000", 0, "")
				_, show := ask(s, "GET", "/x", 0, "")
				text, err := json.Marshal([]any{page, show})
				if err != nil {
					return err
				}
				last := uint64(0)
				for _, a := range acked {
					kind, what, _ := strings.Cut(a, " ")
					if kind == "token" {
						fmt.Sscan(what, &last)
					} else if !strings.Contains(string(text), `"`+what+`"`) {
						return fmt.Errorf("%s was answered and is not there", a)
					}
				}
				a, err := post(s, "/x/claim", 0, `{"workerId":"a"}`)
				if err != nil {
					return err
				}
				if token := uint64(a["fencingToken"].(float64)); token <= last {
					return fmt.Errorf("token %d after %d", token, last)
				}
				return nil
			})
		},
	}
}

func TestWhatWasAnsweredOutlivesEveryCrash(t *testing.T) { faultfs.Test(t, crashOp()) }
