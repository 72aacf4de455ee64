package llmtest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	defer http.DefaultClient.CloseIdleConnections()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func TestTheResponsesAPISaysTheSameAsTheOthers(t *testing.T) {
	api, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, ok := r.LastResult(); ok {
			return llmtest.Reply{Text: "got " + res.Text, Chunks: 2, Usage: &llmtest.Usage{Input: 10, Output: 3, CacheRead: 4}}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "c1", Namespace: "ns", Name: "look", Input: `{"a":1}`}, {ID: "c2", Name: "run", Input: "text", Custom: true}}}
	})
	status, out := post(t, url, `{"model":"m","stream":true,"instructions":"S","input":"hello","tools":[{"type":"function","name":"f"},{"type":"namespace","name":"ns","tools":[{"name":"look"}]},{"type":"web_search"}]}`)
	if status != http.StatusOK || !strings.Contains(out, `"type":"function_call"`) || !strings.Contains(out, `"namespace":"ns"`) || !strings.Contains(out, `"type":"custom_tool_call"`) || !strings.Contains(out, "event: response.completed\n") {
		t.Errorf("%d %s", status, out)
	}
	status, out = post(t, url, `{"model":"m","stream":true,"input":[{"type":"additional_tools","tools":[{"type":"custom","name":"late"}]},{"role":"user","content":[{"type":"input_text","text":"hello"}]},
		{"type":"function_call","call_id":"c1","namespace":"ns","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"seen"}]}`)
	if status != http.StatusOK || !strings.Contains(out, `"delta":"got "`) || !strings.Contains(out, `"input_tokens":14`) || !strings.Contains(out, `"cached_tokens":4`) {
		t.Errorf("%d %s", status, out)
	}
	if status, out = post(t, url, `{"model":"m","input":[{"type":"function_call_output","call_id":"c9","output":"x"}]}`); status != http.StatusBadRequest || !strings.Contains(out, "c9") {
		t.Errorf("%d %s", status, out)
	}
	asked := api.Requests()
	if len(asked) != 2 || asked[0].System != "S" || asked[0].LastUser() != "hello" || strings.Join(asked[0].Tools, " ") != "f ns/look web_search" || strings.Join(asked[1].Tools, " ") != "late" || asked[1].Messages[1].Calls[0].Namespace != "ns" {
		t.Errorf("%+v", asked)
	}
}
