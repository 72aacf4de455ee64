package daemon_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/ipc"
	"rnix/types"
)

const pairSchema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`

// answering is a model that gives one answer after the other, the last one again and again, and keeps what it was asked.
func answering(replies *[]llmtest.Reply, asked *[]llmtest.Request) func(llmtest.Request) llmtest.Reply {
	var mu sync.Mutex
	return func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		*asked = append(*asked, r)
		now := (*replies)[0]
		if len(*replies) > 1 {
			*replies = (*replies)[1:]
		}
		return now
	}
}

func completing(result string) llmtest.Reply {
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "complete", Input: `{"result":` + result + `}`}}}
}

func TestAResultFitsTheSchemaThatWasAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		replies []llmtest.Reply
		want    string
		asked   int
	}{
		"a value":            {[]llmtest.Reply{completing(`{"n":1}`)}, `{"n":1}`, 1},
		"a text with JSON":   {[]llmtest.Reply{completing(`"{\"n\":2}"`)}, `{"n":2}`, 1},
		"a fence":            {[]llmtest.Reply{{Text: "```json\n{\"n\":3}\n```"}}, `{"n":3}`, 1},
		"words, then JSON":   {[]llmtest.Reply{{Text: "It is done."}, {Text: `{"n":4}`}}, `{"n":4}`, 2},
		"a call, then a fit": {[]llmtest.Reply{completing(`{"n":"x"}`), completing(`{"m":1}`), completing(`{"n":5}`)}, `{"n":5}`, 3},
		"never":              {[]llmtest.Reply{{Text: "no"}}, "", 4},
		"never by a call":    {[]llmtest.Reply{completing(`"no"`)}, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []llmtest.Request
			s, _ := treeTest(t, answering(&c.replies, &asked))
			r, err := s.TrySpawn(ipc.SpawnRequest{Intent: "count", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake", OutputSchema: json.RawMessage(pairSchema)}})
			if err != nil {
				t.Fatal(err)
			}
			end := s.Wait(r.PID)
			if end.Result != c.want || (end.Exit.Code == 0) != (c.want != "") || len(asked) != c.asked {
				t.Errorf("%+v after %d answers", end, len(asked))
			}
			if c.want == "" && !strings.Contains(end.Exit.Reason, "the result is not JSON") {
				t.Errorf("reason %q", end.Exit.Reason)
			}
			if !strings.Contains(asked[0].System, `fits this JSON Schema:`) || !strings.Contains(string(asked[0].Body), `"result":`+pairSchema) && !strings.Contains(string(asked[0].Body), `"result":{"additionalProperties":false`) {
				t.Errorf("it was asked %s", asked[0].Body)
			}
		})
	}
}

func TestASchemaHoldsOverResumeForkAndRestart(t *testing.T) {
	replies := []llmtest.Reply{{Text: `{"n":1}`}, {Text: "words"}, {Text: `{"n":2}`}, {Text: "words"}, {Text: `{"n":3}`}}
	var asked []llmtest.Request
	s, _ := treeTest(t, answering(&replies, &asked))
	r, err := s.TrySpawn(ipc.SpawnRequest{Intent: "count", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake", OutputSchema: json.RawMessage(pairSchema)}})
	if err != nil {
		t.Fatal(err)
	}
	if end := s.Wait(r.PID); end.Result != `{"n":1}` {
		t.Fatalf("%+v", end)
	}
	s.Kill()
	s.Start()
	s.Settle()
	for i, req := range []ipc.ResumeRequest{{Target: r.UUID.String(), NewInput: "again", Env: s.Env}, {Target: r.UUID.String(), NewInput: "once more", Fork: true, Env: s.Env}} {
		next, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
		if err != nil {
			t.Fatal(err)
		}
		if end := s.Wait(next.PID); end.Exit.Code != 0 || end.Result != []string{`{"n":2}`, `{"n":3}`}[i] {
			t.Errorf("%d: %+v", i, end)
		}
	}
	if len(asked) != 5 {
		t.Errorf("%d questions", len(asked))
	}
}

func TestASchemaThatIsNoneIsRefused(t *testing.T) {
	s, _ := treeTest(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "x"} })
	for doc, want := range map[string]string{`[]`: "is a JSON object", `null`: "not null", `{"type":"thing"}`: `there is no type "thing"`, `{"$ref":"http://localhost/x"}`: "refers to itself only",
		`{"a":"` + strings.Repeat("x", 64<<10) + `"}`: "at most 65536"} {
		_, err := s.TrySpawn(ipc.SpawnRequest{Intent: "count", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake", OutputSchema: json.RawMessage(doc)}})
		if err == nil || !strings.Contains(err.Error(), want) || types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%.40s: %v", doc, err)
		}
	}
}
