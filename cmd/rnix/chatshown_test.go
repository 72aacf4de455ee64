package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
)

// A person shows images to an agent: in the first message, while it works, and after it has ended; named, dropped, and out of the clipboard. What cannot be
// shown is said while the text still stands there, and what was shown stays over kill -9.
func TestAPersonShowsImagesToAnAgent(t *testing.T) {
	s := newScreen(t)
	bin := filepath.Join(filepath.Dir(s.dir), "bin")
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "DISPLAY=:9", "TMPDIR="+filepath.Dir(s.dir))
	api := talkAPI(t, s)
	api.Answer(func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); !told {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"until test -e go; do sleep 0.5; done"}`}}}
		}
		return llmtest.Reply{Text: "I have seen it."}
	})
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	pictures := map[string]string{}
	for i, name := range []string{"first.png", "my shot.png", "b.png", "clip"} {
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 60+i, 2))); err != nil {
			t.Fatal(err)
		}
		pictures[name] = b.String()
		write(filepath.Join(s.dir, name), b.String(), 0o600)
	}
	write(filepath.Join(bin, "xclip"), "#!/bin/sh\nexec cat '"+filepath.Join(s.dir, "clip")+"'\n", 0o700)
	shown := func(names ...string) {
		t.Helper()
		all := api.Requests()
		body := all[len(all)-1].Body
		for _, name := range names {
			if n := bytes.Count(body, []byte(base64.StdEncoding.EncodeToString([]byte(pictures[name])))); n != 1 {
				t.Errorf("the last request has %s %d times", name, n)
			}
		}
	}

	s.open("100", "40", "rnix chat --attach first.png")
	s.sees("say what is to be done", "the agent is shown [image first.png 60×2, 75 bytes]")
	s.keys("wait for it", "Enter")
	s.sees("shell until test", "Esc interrupts")
	s.tmux("set-buffer", "'"+filepath.Join(s.dir, "my shot.png")+"'") // as a terminal does when a file is dropped on it
	s.keys("see ")
	s.tmux("paste-buffer", "-p", "-r")
	s.sees(`see @"my shot.png"`, "the agent is shown [image my shot.png 61×2, 75 bytes]")
	s.keys("Enter")
	s.sees(`queued: see @"my shot.png"  [image my shot.png 61×2, 75 bytes]`)
	write(filepath.Join(s.dir, "go"), "", 0o600)
	s.sees("I have seen it.", "say what is next")
	shown("first.png", "my shot.png")

	s.keys("and @nosuch.png @b.png", "Enter")
	s.sees("no such file: nosuch.png", "and @nosuch.png @b.png")
	s.keys("C-u", "and @b.png", "C-v")
	s.sees("the agent is shown [image b.png 62×2, 75 bytes] [image pasted-1.png 63×2, 75 bytes]")
	s.keys("Enter")
	s.until(func(string) bool {
		r := api.Requests()
		return strings.Contains(string(r[len(r)-1].Body), "pasted-1.png")
	}, "it is not sent")
	s.sees("say what is next")
	shown("first.png", "my shot.png", "b.png", "clip")
	s.leave("C-d")
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(s.dir), "rnix-paste-*", "pasted-1.png")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}

	s.run("rnix -c --attach b.png 'the last one'")
	s.sees("› the last one", "say what is next")
	s.until(func(string) bool {
		r := api.Requests()
		return strings.Contains(string(r[len(r)-1].Body), "the last one")
	}, "it is not sent")
	all := api.Requests()
	if n := strings.Count(string(all[len(all)-1].Body), base64.StdEncoding.EncodeToString([]byte(pictures["b.png"]))); n != 2 {
		t.Errorf("the last request has the image of the command line %d times with the one before", n)
	}
	s.leave("C-d")
}
