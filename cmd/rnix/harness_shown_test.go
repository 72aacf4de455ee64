package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/testenv"
)

// picture puts an image of n×n pixels into the work directory, and returns it in base64.
func (u *user) picture(name string, n int) string {
	u.t.Helper()
	var b bytes.Buffer
	err := png.Encode(&b, image.NewGray(image.Rect(0, 0, n, n)))
	if err == nil {
		err = os.WriteFile(filepath.Join(u.Work, name), b.Bytes(), 0o600)
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// once fails if the last request has not each of some pictures once.
func (u *user) once(when string, pictures ...string) {
	u.t.Helper()
	asked := u.Requests()
	body := asked[len(asked)-1].Body
	for i, p := range pictures {
		if n := bytes.Count(body, []byte(p)); n != 1 {
			u.t.Errorf("%s: picture %d is there %d times", when, i+1, n)
		}
	}
}

// Each image is in each request once: that of the task and that of a steer whose daemon is killed before it is heard, those of a resume and of a fork.
func TestRealCommandLinesAreShownEachImageOnce(t *testing.T) {
	for _, name := range []string{"claude", "codex"} {
		l := lines[name]
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name, nil)
			a, b, c, d := u.picture("a.png", 3), u.picture("b.png", 4), u.picture("c.png", 5), u.picture("d.png", 6)
			var first, second atomic.Bool
			var hung atomic.Int32
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				switch {
				case first.CompareAndSwap(false, true): // its session has the task, and no answer is on record
					hung.Add(1)
					return llmtest.Reply{Text: "I be", Hang: true}
				case vendortest.Heard(r, "draw another"):
					return llmtest.Reply{Text: "of the fork"}
				case vendortest.Heard(r, "look at c"):
					return llmtest.Reply{Text: "with c"}
				case vendortest.Heard(r, "look at b"):
					return llmtest.Reply{Text: "with b"}
				case second.CompareAndSwap(false, true):
					return l.use("shell", map[string]any{"command": waits})
				}
				return llmtest.Reply{Text: "not told yet"}
			})
			again := func() {
				if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				u.must("daemon", "start")
			}
			u.must(append(append([]string{"run", "--detach", "--tools", "kernel", "--name", "p", "--attach", "a.png"}, l.args...), "wait for the gate")...)
			if !testenv.Within(60e9, func() bool { return hung.Load() > 0 }) {
				t.Fatal(u.must("log", "p"))
			}
			again()
			u.exists("began")
			u.once("after the first kill", a)
			u.must("steer", "--no-wait", "--attach", "b.png", "p", "look at b")
			again()
			u.write("gate")
			if out := u.must("wait", "--timeout", "60s", "p"); !strings.Contains(out, "with b") {
				t.Errorf("%s\n%s", out, u.must("log", "p"))
			}
			u.once("after the second kill", a, b)
			if out := u.must("resume", "--follow", "--new-input", "look at c", "--attach", "c.png", "p"); !strings.Contains(out, "with c") {
				t.Error(out)
			}
			u.once("after a resume", a, b, c)
			if out := u.must("resume", "--fork", "--follow", "--name", "q", "--new-input", "draw another", "--attach", "d.png", "p"); !strings.Contains(out, "of the fork") {
				t.Error(out)
			}
			u.once("in a fork", a, b, c, d)
		})
	}
}

// codex takes no PDFs. A person is told so before anything is started, or sent.
func TestAPDFForRealCodexIsRefused(t *testing.T) {
	u := newUser(t, "codex", nil)
	u.Answer(vendortest.Play(llmtest.Reply{Text: "I be", Hang: true}))
	if err := os.WriteFile(filepath.Join(u.Work, "a.pdf"), []byte("%PDF-1.7\n1 0 obj << /Type /Pages /Count 1 >> endobj\n<< /Type /Page /Parent 1 0 R >>\ntrailer << >>\n%%EOF\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(args ...string) {
		t.Helper()
		if out, code := u.rnix(args...); code != 2 || !strings.Contains(out, `cannot show it "a.pdf": codex takes images, and no PDFs; name the file in the text instead, and the agent reads it`) {
			t.Errorf("%v: exit code %d, %s", args, code, out)
		}
	}
	refused("run", "--harness", "codex", "--attach", "a.pdf", "read it")
	if out := u.must("ps", "-a"); strings.Contains(out, "codex") {
		t.Errorf("it was started: %s", out)
	}
	u.must("run", "--detach", "--harness", "codex", "--name", "p", "begin")
	refused("steer", "--attach", "a.pdf", "p", "read it")
	u.must("pause", "p")
	u.must("daemon", "stop")
	refused("send", "--attach", "a.pdf", "p", "read it")
	refused("resume", "--new-input", "read it", "--attach", "a.pdf", "p")
	if files, err := filepath.Glob(filepath.Join(u.Home, "data", "steps", "*", "attachments", "*")); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
}
