package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/internal/harness/vendortest"
)

// typist is a vendor that answers with one word after the other, and knows when it has sent each.
type typist struct {
	mu    sync.Mutex
	asked int                  // +checklocks:mu
	sent  map[string]time.Time // +checklocks:mu
}

// How it speaks: as fast as models do.
const (
	typistWords = 60
	typistPause = 40 * time.Millisecond
)

// A word says to which request it belongs: programs ask for a title of the conversation beside.
var typistWord = regexp.MustCompile(`w\d\dx\d\d\d`)

func (a *typist) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.Method != http.MethodPost || !bytes.Contains(body, []byte(`"stream":true`)) {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(kind string, fields map[string]any) {
		fields["type"] = kind
		raw, _ := json.Marshal(fields)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, raw)
		w.(http.Flusher).Flush()
	}
	type m = map[string]any
	told := bytes.Contains(body, []byte("count for me"))
	a.mu.Lock()
	a.asked++
	asked := a.asked
	a.mu.Unlock()
	var text strings.Builder
	speak := func(piece func(string)) {
		if !told { // what a program asks beside, such as for a title
			piece("ok")
			return
		}
		for i := range typistWords {
			<-time.After(typistPause)
			word := fmt.Sprintf("w%02dx%03d", asked, i)
			text.WriteString(word + " ")
			piece(word + " ")
			a.mu.Lock()
			a.sent[word] = time.Now()
			a.mu.Unlock()
		}
	}
	if strings.HasSuffix(r.URL.Path, "/responses") {
		item := m{"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []any{}}
		say("response.created", m{"response": m{"id": "resp_1", "status": "in_progress"}})
		say("response.output_item.added", m{"output_index": 0, "item": item})
		say("response.content_part.added", m{"item_id": "msg_1", "output_index": 0, "content_index": 0, "part": m{"type": "output_text", "text": ""}})
		speak(func(s string) {
			say("response.output_text.delta", m{"item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": s})
		})
		item["status"], item["content"] = "completed", []any{m{"type": "output_text", "text": text.String()}}
		say("response.output_item.done", m{"output_index": 0, "item": item})
		say("response.completed", m{"response": m{"id": "resp_1", "status": "completed", "output": []any{item}, "usage": m{"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}}})
		return
	}
	say("message_start", m{"message": m{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []any{}, "stop_reason": nil, "usage": m{"input_tokens": 9, "output_tokens": 1}}})
	say("content_block_start", m{"index": 0, "content_block": m{"type": "text", "text": ""}})
	speak(func(s string) { say("content_block_delta", m{"index": 0, "delta": m{"type": "text_delta", "text": s}}) })
	say("content_block_stop", m{"index": 0})
	say("message_delta", m{"delta": m{"stop_reason": "end_turn"}, "usage": m{"output_tokens": 9}})
	say("message_stop", m{})
}

// BenchmarkTextOnScreen is how long a word of an answer takes from the vendor's socket to the terminal, in a conversation of rnix, and in those of the
// vendors' own programs: the median of the words, and the time within which 19 of 20 are there.
func BenchmarkTextOnScreen(b *testing.B) {
	if _, err := exec.LookPath("tmux"); err != nil {
		b.Skip("needs tmux")
	}
	dir, err := os.MkdirTemp("/var/tmp", "rnix") // b.TempDir is too long for a socket, and the programs do not trust /tmp
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	rnix := compile(b, filepath.Join(dir, "bin", "rnix"), ".")
	for name, start := range map[string]func(b *testing.B, home, url string) (command string, env []string){
		"rnix": func(b *testing.B, home, url string) (string, []string) {
			env := []string{"RNIX_DATA_DIR=" + filepath.Join(home, "data"), "XDG_RUNTIME_DIR=" + home, "ANTHROPIC_API_KEY=" + vendortest.Key, "ANTHROPIC_BASE_URL=" + url}
			b.Cleanup(func() {
				c := exec.Command(rnix, "daemon", "stop")
				c.Env = append(env, "HOME="+home, "PATH="+os.Getenv("PATH"))
				if out, err := c.CombinedOutput(); err != nil {
					b.Errorf("daemon stop: %v: %s", err, out)
				}
			})
			return rnix + " chat --provider anthropic --model m", env
		},
		"claude": func(b *testing.B, home, url string) (string, []string) {
			keep(b, filepath.Join(home, ".claude.json"), fmt.Sprintf(`{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":[%q]},"projects":{%q:{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}`,
				vendortest.Key[max(len(vendortest.Key)-20, 0):], filepath.Join(home, "work")))
			return vendortest.Program(b, "claude") + " --model claude-opus-5-5", []string{"ANTHROPIC_API_KEY=" + vendortest.Key, "ANTHROPIC_BASE_URL=" + url,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_RETRIES=0"}
		},
		"codex": func(b *testing.B, home, url string) (string, []string) {
			keep(b, filepath.Join(home, ".codex", "config.toml"), fmt.Sprintf("model = \"m\"\nmodel_provider = \"fake\"\ncheck_for_update_on_startup = false\n[model_providers.fake]\nname = \"fake\"\nbase_url = %q\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n[projects.%q]\ntrust_level = \"trusted\"\n",
				url+"/v1", filepath.Join(home, "work")))
			return vendortest.Program(b, "codex") + " --disable daemon_auto_start", []string{"OPENAI_API_KEY=" + vendortest.Key}
		},
	} {
		b.Run(name, func(b *testing.B) {
			api := &typist{sent: map[string]time.Time{}}
			srv := httptest.NewServer(api)
			b.Cleanup(srv.Close)
			home := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Join(home, "work"), 0o700); err != nil {
				b.Fatal(err)
			}
			command, env := start(b, home, srv.URL)
			late := watched(b, api, home, command, env)
			slices.Sort(late)
			b.ReportMetric(float64(late[len(late)/2]), "word-ns")
			b.ReportMetric(float64(late[len(late)*19/20]), "word95-ns")
			b.ReportMetric(0, "ns/op") // of one answer, which is as long as the vendor speaks
		})
	}
}

func keep(b *testing.B, path, text string) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// watched asks a program in a terminal for an answer, and returns how late each word of it was written there.
func watched(b *testing.B, api *typist, home, command string, env []string) (late []time.Duration) {
	sock, fifo := filepath.Join(home, "tmux"), filepath.Join(home, "out")
	tmux := func(args ...string) string {
		c := exec.Command("tmux", append([]string{"-S", sock, "-f", "/dev/null"}, args...)...)
		c.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=xterm-256color", "SHELL=/bin/sh"}, env...)
		c.Dir = filepath.Join(home, "work")
		out, err := c.CombinedOutput()
		if err != nil {
			b.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		b.Fatal(err)
	}
	tmux("new-session", "-d", "-x", "100", "-y", "40", command)
	b.Cleanup(func() { tmux("kill-server") })
	screen, since := "", time.Now()
	for end := time.Now().Add(time.Minute); screen == "" || time.Since(since) < 2*time.Second; <-time.After(100 * time.Millisecond) { // until it is drawn and stays so
		if now := strings.TrimSpace(tmux("capture-pane", "-p")); now != screen {
			screen, since = now, time.Now()
		}
		if time.Now().After(end) {
			break
		}
	}
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	seen, began := make(chan map[string]time.Time, 1), make(chan struct{})
	stop := time.AfterFunc(time.Minute, func() { _ = f.Close() })
	go func() {
		got, last, buf := map[string]time.Time{}, "", make([]byte, 64<<10)
		for len(got) < typistWords {
			n, err := f.Read(buf)
			if err != nil {
				break
			}
			now := time.Now()
			last += string(buf[:n])
			for _, w := range typistWord.FindAllString(last, -1) {
				if len(got) == 0 {
					close(began)
				}
				if got[w].IsZero() {
					got[w] = now
				}
			}
			last = last[max(len(last)-16, 0):]
		}
		seen <- got
	}()
	tmux("pipe-pane", "-O", "cat >"+fifo)
	tmux("send-keys", "-l", "count for me")
	<-time.After(2 * time.Second)                     // a program may take what comes at once for a paste
	for waits, on := true, 0; waits && on < 5; on++ { // nor one that is not ready yet
		tmux("send-keys", "Enter")
		select {
		case <-began:
			waits = false
		case <-time.After(8 * time.Second):
		}
	}
	got := <-seen
	stop.Stop()
	_ = f.Close()
	api.mu.Lock()
	defer api.mu.Unlock()
	for w, at := range got {
		if sent, ok := api.sent[w]; ok {
			late = append(late, max(at.Sub(sent), 0))
		}
	}
	if len(late) < typistWords {
		b.Fatalf("%d of %d words came:\n%s", len(late), typistWords, tmux("capture-pane", "-p"))
	}
	return late
}
