package llm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/types"
)

// conversationIn returns what of a request's body is the conversation, as it was sent.
func conversationIn(t *testing.T, body string) string {
	t.Helper()
	var in map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	if ms, ok := in["messages"]; ok {
		return string(ms)
	}
	return string(in["input"])
}

func TestEachAPIIsGivenImagesAndPDFsInItsOwnForm(t *testing.T) {
	for name, want := range map[string][]string{
		"Anthropic Messages": {
			`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cGljdHVyZQ=="}},{"type":"text","text":"x [a.png]","cache_control":{"type":"ephemeral"}}]}`,
			`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"seen"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cGljdHVyZQ=="}}]}`,
			`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"cGljdHVyZQ=="},"title":"a.png"}`,
		},
		"OpenAI Responses": {
			`"content":[{"type":"input_text","text":"x [a.png]"},{"type":"input_image","image_url":"data:image/png;base64,cGljdHVyZQ=="}]`,
			`"output":[{"type":"input_text","text":"seen"},{"type":"input_image","image_url":"data:image/png;base64,cGljdHVyZQ=="}]`,
			`{"type":"input_file","filename":"a.png","file_data":"data:application/pdf;base64,cGljdHVyZQ=="}`,
		},
		"OpenAI Chat Completions": {
			`"content":[{"type":"text","text":"x [a.png]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cGljdHVyZQ=="}}]`,
			`{"role":"tool","content":"no","tool_call_id":"b"},{"role":"user","content":[{"type":"text","text":"What the tool has attached to its answer above: [image a.png 3×4, 7 bytes]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,cGljdHVyZQ=="}}]}`,
			`{"type":"file","file":{"filename":"a.png","file_data":"data:application/pdf;base64,cGljdHVyZQ=="}}`,
		},
	} {
		for _, w := range ways() {
			if w.name != name {
				continue
			}
			_, _, images, err := w.exchange(t, nil, nil, shows("image/png"))
			_, _, pdfs, err2 := w.exchange(t, nil, nil, shows("application/pdf"))
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			sent := conversationIn(t, images[0]) + conversationIn(t, pdfs[0])
			for _, part := range want {
				if !strings.Contains(sent, part) {
					t.Errorf("%s: it was sent\n%s\nwithout\n%s", name, sent, part)
				}
			}
		}
	}
}

func TestAMissingFileIsATextInItsPlace(t *testing.T) {
	for _, w := range ways() {
		for code, why := range map[types.ErrCode]string{types.ErrNotFound: "its file is missing from the history", types.ErrStorage: "its file in the history is damaged"} {
			req := shows("image/png")
			req.Attachment = func(a rnixctx.Attachment) ([]byte, error) {
				return nil, types.Errorf(code, "Attachment", a.SHA256, "no")
			}
			_, _, bodies, err := w.exchange(t, nil, nil, req)
			if err != nil || strings.Count(bodies[0], "[image a.png 3×4, 7 bytes; not shown: "+why+"]") != 2 || strings.Contains(bodies[0], "base64") {
				t.Errorf("%s: %v, %s", w.name, err, bodies)
			}
		}
	}
}

// TestAConversationOutlivesAnImageThatItsServerRefuses: else each later request would be refused for it.
func TestAConversationOutlivesAnImageThatItsServerRefuses(t *testing.T) {
	for _, w := range ways() {
		refuses := func(r llmtest.Request) llmtest.Reply {
			if strings.Contains(string(r.Body), "cGljdHVyZQ==") {
				return llmtest.Reply{Status: 400, Text: "Could not process image"}
			}
			return llmtest.Reply{Text: "well"}
		}
		resps, _, bodies, err := w.exchange(t, refuses, nil, shows("image/png"), shows("image/png"))
		if err != nil || len(resps) != 2 || len(bodies) != 3 {
			t.Fatalf("%s: %v, %d answers to %d requests", w.name, err, len(resps), len(bodies))
		}
		if !strings.Contains(bodies[2], "not shown: the model's server refuses it: ") || !strings.Contains(bodies[2], "Could not process image") {
			t.Errorf("%s: the model is not told why: %s", w.name, bodies[2])
		}
		_, _, bodies, err = w.exchange(t, always(llmtest.Reply{Status: 400, Text: "prompt is too long: 9 tokens, image"}), nil, shows("image/png"))
		if len(bodies) != 1 || types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: what is too long is asked %d times: %v", w.name, len(bodies), err)
		}
	}
}

// TestARequestStaysWithinWhatVendorsTake: the oldest go, and the beginning of the prompt stays the same until there are too many again.
func TestARequestStaysWithinWhatVendorsTake(t *testing.T) {
	d, err := llm.NewAnthropic(llm.HTTPConfig{BaseURL: "http://127.0.0.1:1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	counts := func(n int, size int64) (sent []int) {
		req := llm.LLMRequest{Attachment: func(rnixctx.Attachment) ([]byte, error) { return []byte("picture"), nil }}
		for i := range n {
			a := rnixctx.Attachment{Name: fmt.Sprintf("%d.png", i), Media: "image/png", SHA256: fmt.Sprint(i), Bytes: size, Width: 1, Height: 1}
			req.Messages = append(req.Messages, rnixctx.Message{Role: rnixctx.RoleUser, Content: a.Label(), Attachments: []rnixctx.Attachment{a}}, rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "seen"})
			_, body, err := d.Encode(req)
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, strings.Count(string(body), "cGljdHVyZQ=="))
		}
		return sent
	}
	want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 10}
	if diff := cmp.Diff(want, counts(len(want), 1)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5, 2, 3, 4, 5, 2}, counts(10, 4<<20)); diff != "" {
		t.Error(diff)
	}
}

func TestAModelThatIsAskedInWordsIsToldWhatItIsNotShown(t *testing.T) {
	got := llm.Transcript(shows("image/png").Messages)
	if strings.Count(got, "[image a.png 3×4, 7 bytes; not shown: this model is shown no images]") != 2 {
		t.Error(got)
	}
}
