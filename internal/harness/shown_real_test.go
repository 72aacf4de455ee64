package harness_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/types"
)

// square is an image of n×n pixels.
func square(t *testing.T, name string, n int) agent.Attachment {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, n, n))); err != nil {
		t.Fatal(err)
	}
	return agent.Attachment{Name: name, Media: "image/png", Data: b.Bytes()}
}

// paper is a PDF of one page.
func paper() agent.Attachment {
	return agent.Attachment{Name: "a.pdf", Media: "application/pdf", Data: []byte("%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n" +
		"3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>\nendobj\nxref\n0 4\n0000000000 65535 f \n0000000009 00000 n \n0000000058 00000 n \n0000000115 00000 n \n" +
		"trailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n185\n%%EOF\n")}
}

// times is how often a request has what was attached.
func times(r llmtest.Request, a agent.Attachment) int {
	return bytes.Count(r.Body, []byte(base64.StdEncoding.EncodeToString(a.Data)))
}

// Each request has each attachment once: one of the task, one that is said while it works, two that are said between turns, and those of a session that goes on.
func TestRealClaudeIsShownImagesAndPDFsOnce(t *testing.T) {
	v := vendortest.New(t, nil)
	gate := filepath.Join(v.Work, "gate")
	a, b, c, d, e, pdf := square(t, "a.png", 3), square(t, "b.png", 4), square(t, "c.png", 5), square(t, "d.png", 6), square(t, "e.png", 7), paper()
	v.Answer(vendortest.Play(call("Bash", map[string]any{"command": "until [ -e gate ]; do sleep 0.05; done; echo passed", "description": "waits"}), say("done"), say("and again"), say("third"), say("fourth")))
	r := start(t, v, "claude", agent.Spec{Prompt: "wait for the gate [image a.png] [PDF a.pdf]", Attachments: []agent.Attachment{a, pdf}, AllowedTools: []string{"Bash"}})
	r.await(0, "the call", func(e agent.Event) bool { _, ok := e.(agent.ToolUseEvent); return ok })
	tell := func(text string, shown agent.Attachment) {
		line, err := r.cli.Steer(text, shown)
		if err != nil {
			t.Fatal(err)
		}
		r.write(line)
	}
	tell("look at b", b)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, i := r.turn(0)
	tell("look at c", c)
	tell("look at d", d)
	r.turn(i + 1)
	r.await(0, "a sign that it heard of d", func(e agent.Event) bool {
		s, ok := e.(agent.SystemEvent)
		return ok && s.Subtype == harness.SystemHeard && s.Message == "look at d"
	})
	events, exit := r.end()
	if exit.Code != 0 {
		t.Errorf("%+v: %s", exit, show(events))
	}
	heard := map[string]int{}
	for _, s := range each[agent.SystemEvent](events) {
		if s.Subtype == harness.SystemHeard {
			heard[s.Message]++
		}
	}
	if len(heard) != 4 || heard["wait for the gate [image a.png] [PDF a.pdf]"] != 1 || heard["look at b"] != 1 || heard["look at c"] != 1 || heard["look at d"] != 1 {
		t.Errorf("heard %v", heard)
	}
	id := last[agent.InitEvent](events).SessionID
	start(t, v, "claude", agent.Spec{Prompt: "look at e", Attachments: []agent.Attachment{e}, Resume: id}).end()
	asked := v.Requests()
	if times(asked[0], a) != 1 || times(asked[0], pdf) != 1 || times(asked[0], b) != 0 || times(asked[1], a) != 1 || times(asked[1], b) != 1 {
		t.Error("the first two requests are wrong")
	}
	final := asked[len(asked)-1]
	for _, shown := range []agent.Attachment{a, b, c, d, e, pdf} {
		if n := times(final, shown); n != 1 {
			t.Errorf("%s is %d times in the last request", shown.Name, n)
		}
	}
}

func TestRealCodexIsShownImages(t *testing.T) {
	a, b, c := square(t, "a.png", 3), square(t, "b.png", 4), square(t, "c.png", 5)
	v := vendortest.New(t, vendortest.Play(say("one"), say("two")))
	first, _ := start(t, v, "codex", agent.Spec{Prompt: "look at a and b", Model: direct, Attachments: []agent.Attachment{a, b}}).end()
	events, exit := start(t, v, "codex", agent.Spec{Prompt: "look at c", Model: direct, Attachments: []agent.Attachment{c}, Resume: last[agent.InitEvent](first).SessionID}).end()
	if exit.Code != 0 || last[agent.ResultEvent](events).Message != "two" {
		t.Errorf("%s", show(events))
	}
	asked := v.Requests()
	if len(asked) != 2 || times(asked[0], a) != 1 || times(asked[0], b) != 1 || !vendortest.Heard(asked[1], "look at c") {
		t.Fatalf("%d requests", len(asked))
	}
	for _, shown := range []agent.Attachment{a, b, c} {
		if n := times(asked[1], shown); n != 1 {
			t.Errorf("%s is %d times in the last request", shown.Name, n)
		}
	}
}

func TestWhatACommandLineDoesNotTakeIsRefused(t *testing.T) {
	for _, name := range harness.Names() {
		cli, err := harness.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		at := harness.Place{Dir: "/d"}
		cmd, err := cli.Command(agent.Spec{Prompt: "p", CWD: "/w", Attachments: []agent.Attachment{paper()}}, at)
		switch {
		case !cli.Can().Documents && (types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), name+" takes images, and no PDFs")):
			t.Errorf("%s: %v", name, err)
		case cli.Can().Documents && err != nil:
			t.Errorf("%s: %v", name, err)
		case cli.Can().Documents && !cli.Can().Steer && (len(cmd.Files) == 0 || !strings.Contains(strings.Join(cmd.Args, " "), "/d/shown/")):
			t.Errorf("%s: %v", name, cmd.Args)
		}
	}
	cli, err := harness.Lookup("codex")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Command(agent.Spec{Prompt: "p", CWD: "/w", Attachments: []agent.Attachment{square(t, "a.png", 1)}}, harness.Place{Dir: "/a,b"}); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "comma") {
		t.Error(err)
	}
}

// opencode shows a model what models.dev or the user's configuration says that it takes.
func TestRealOpencodeIsShownImagesAndPDFs(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("one")))
	config, err := json.Marshal(map[string]any{"model": "fake/m1", "provider": map[string]any{"fake": map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": map[string]string{"baseURL": v.URL + "/v1", "apiKey": "{env:OPENAI_API_KEY}"},
		"models": map[string]any{"m1": map[string]any{"name": "m1", "attachment": true, "modalities": map[string]any{"input": []string{"text", "image", "pdf"}, "output": []string{"text"}},
			"limit": map[string]int{"context": 100000, "output": 1000}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(v.UsedOpencode(t), "opencode.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	a, pdf := square(t, "a.png", 3), paper()
	events, exit := start(t, v, "opencode", agent.Spec{Prompt: "look at both", Attachments: []agent.Attachment{a, pdf}}).end()
	asked := v.Requests()
	if exit.Code != 0 || len(asked) == 0 || times(asked[0], a) != 1 || times(asked[0], pdf) != 1 || !vendortest.Heard(asked[0], "look at both") {
		t.Errorf("%+v, %d requests: %s", exit, len(asked), show(events))
		for _, q := range asked {
			t.Logf("%.6000s", q.Body)
		}
	}
}
