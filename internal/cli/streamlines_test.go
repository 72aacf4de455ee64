package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// add adds pieces, "think: ..." or "...", each of the answer with the number before it, and returns what comes of them.
func add(s *answerPieces, pieces ...string) (events []string) {
	for _, p := range pieces {
		e := &ipc.Event{Kind: event.Piece, Name: "output", Answer: uint64(p[0] - '0'), Text: p[1:]}
		if text, ok := strings.CutPrefix(e.Text, "think: "); ok {
			e.Name, e.Text = "think", text
		}
		if e.Answer == s.answer {
			e.At = s.at[e.Name]
		}
		events = append(events, names(s.add(e, answerer{id(3), "m"}))...)
	}
	return events
}

func names(list []*apiEvent) (out []string) {
	for _, e := range list {
		name := e.Type
		if e.Index != nil {
			name += " " + string(rune('0'+*e.Index))
		}
		out = append(out, name)
	}
	return out
}

func TestPiecesAreBlocksInTheirOrder(t *testing.T) {
	s := &answerPieces{step: 2}
	got := add(s, "1think: a", "1think: b", "1one ", "1think: c", "1two")
	want := []string{"message_start", "content_block_start 0", "content_block_delta 0", "content_block_delta 0", "content_block_stop 0", "content_block_start 1", "content_block_delta 1",
		"content_block_stop 1", "content_block_start 2", "content_block_delta 2", "content_block_stop 2", "content_block_start 3", "content_block_delta 3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	thought := func(text string) any { return thoughtBlock{Type: "thinking", Thinking: text} }
	said := func(text string) any { return textBlock{"text", text} }
	for _, c := range []struct {
		step int
		text string
		want []any
	}{
		{2, "one two", []any{thought("ab"), said("one "), thought("c"), said("two")}},
		{2, "otherwise", []any{thought("abc"), said("otherwise")}}, // pieces were missed: what is on record counts
		{2, "", []any{thought("abc")}},
		{3, "of another step", []any{said("of another step")}},
	} {
		if diff := cmp.Diff(c.want, s.content(c.step, c.text)); diff != "" {
			t.Errorf("%q: %s", c.text, diff)
		}
	}
	// The text on record counts, which may be without white space at its ends.
	s = &answerPieces{step: 1}
	add(s, "1think: x", "1 text\n")
	if diff := cmp.Diff([]any{thought("x"), said("text")}, s.content(1, "text")); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerThatBrokeOffIsClosed(t *testing.T) {
	s := &answerPieces{step: 1}
	add(s, "1half")
	if diff := cmp.Diff([]string{"content_block_stop 0", "message_stop", "message_start", "content_block_start 0", "content_block_delta 0"}, add(s, "2whole")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]any{textBlock{"text", "whole"}}, s.content(1, "whole")); diff != "" {
		t.Error(diff)
	}
	if l := (&answerPieces{}).add(&ipc.Event{Kind: event.LogLine, Answer: 1, Text: "a", Total: 2}, answerer{}); l[len(l)-1].Delta != (textDelta{"text_delta", "a\n"}) {
		t.Errorf("the end of a line: %+v", l[len(l)-1].Delta)
	}
}

// What the next daemon sends again of an answer is in its blocks once, and the message of one that broke off is closed when the step begins again.
func TestAnAnswerIsWrittenOnceOverDaemons(t *testing.T) {
	var b bytes.Buffer
	out := &output{format: asStream, out: stream{w: &b}}
	w := newWatch(out, ipc.SpawnResponse{PID: 3, UUID: id(3), Model: "m"}, ipc.SpawnRequest{})
	out.lines.partial = true
	piece := func(answer uint64, at int, text string) ipc.Event {
		return ipc.Event{Kind: event.Piece, Name: "output", Answer: answer, At: at, Text: text}
	}
	line := func(at int, text string, total int) ipc.Event {
		return ipc.Event{Kind: event.LogLine, Name: "output", Answer: 1, At: at, Text: text, Total: total}
	}
	for _, e := range []ipc.Event{{Kind: event.StepStarted, Step: 1}, piece(1, 0, "one\ntw"), line(0, "one", 4), line(4, "two", 4), piece(1, 4, "two\n"), {Kind: event.StepStarted, Step: 1}, line(0, "one", 4), piece(2, 0, "new")} {
		e.PID, e.UUID = 3, id(3)
		w.streamLine(&frame{e: e, raw: []byte("{}")})
	}
	want := []string{"message_start", "content_block_start", "content_block_deltaone\ntw", "content_block_deltao\n", "content_block_stop", "message_stop",
		"message_start", "content_block_start", "content_block_deltanew"}
	if diff := cmp.Diff(want, pieceTypes(t, b.String())); diff != "" {
		t.Error(diff)
	}
}

// pieceTypes returns the events of the Messages API in lines.
func pieceTypes(t *testing.T, lines string) (got []string) {
	t.Helper()
	for text := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		var l struct {
			Type  string
			Event struct {
				Type  string
				Delta textDelta
			}
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Event.Type != "":
			got = append(got, l.Event.Type+l.Event.Delta.Text)
		case l.Type != "system":
			got = append(got, l.Type)
		}
	}
	return got
}

// The message of an answer that is read late does not come into that of the next one, and no message is open behind the last line.
func TestAMessageIsWrittenIntoNoOther(t *testing.T) {
	var b bytes.Buffer
	out := &output{format: asStream, out: stream{w: &b}}
	w := newWatch(out, ipc.SpawnResponse{PID: 3, UUID: id(3), Model: "m"}, ipc.SpawnRequest{})
	out.lines.partial = true
	for _, e := range []ipc.Event{{Kind: event.StepStarted, Step: 1}, {Kind: event.StepStarted, Step: 2}, {Kind: event.Piece, Name: "output", Answer: 2, Text: "new"}} {
		e.PID, e.UUID = 3, id(3)
		w.streamLine(&frame{e: e, raw: []byte("{}")})
	}
	out.lines.message(&ipc.ConversationMessage{N: 1, Step: 1, Role: "assistant", Content: "old"})
	out.lines.end(out.lines.resultOf(out.lines.leftAt(), "interrupted", left(ExitInterrupted)))
	want := []string{"message_start", "content_block_start", "content_block_deltanew", "assistant", "content_block_stop", "message_stop", "result"}
	if diff := cmp.Diff(want, pieceTypes(t, b.String())); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(lastLine(b.String()), `"terminal_reason":"aborted_streaming"`) {
		t.Error(lastLine(b.String()))
	}
}

// A line of thoughts that the log has shortened is counted in what is missing of the message.
func TestMissingThoughtsAreCounted(t *testing.T) {
	s := &answerPieces{step: 1}
	for _, e := range []ipc.Event{{At: 0, Text: "short", Total: 6}, {At: 6, Text: "a[...]z", Total: 108}, {At: 214, Text: "end", Total: 3}} {
		e.Kind, e.Name, e.Answer = event.LogLine, "think", 1
		s.add(&e, answerer{})
	}
	if s.lost != 200 {
		t.Errorf("%d bytes are missing", s.lost)
	}
	var b bytes.Buffer
	l := &lineStream{out: &output{out: stream{w: &b}}, spawn: &ipc.SpawnResponse{}, pieces: *s}
	l.message(&ipc.ConversationMessage{Role: "assistant", Step: 1, Content: "said", Cut: 5})
	if !strings.Contains(b.String(), `"cut_bytes":205`) {
		t.Errorf("%s", b.String())
	}
}

func TestInputsAreObjects(t *testing.T) {
	for in, want := range map[string]string{`{"a":1}`: `{"a":1}`, `{"a":`: `{"unparsed":"{\"a\":"}`, `[1]`: `{"unparsed":"[1]"}`, `null`: `{"unparsed":"null"}`, ``: `{"unparsed":""}`, `"x"`: `{"unparsed":"\"x\""}`} {
		if got := string(inputOf(in)); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// The totals are those of the whole record, with an answer whose step has not ended.
func TestAStreamCountsAllAnswers(t *testing.T) {
	f := newFake(t)
	f.theRun([]ipc.Event{{Kind: event.StepStarted, Step: 2}, {Kind: event.LogLine, Name: "think", Text: "Hm.", Answer: 7, Total: 3},
		{Kind: event.Asked, Name: "shell"}, {Kind: event.StepEnded, Step: 2}, {Kind: event.Exited, Exit: &done}}, ipc.WaitResponse{Exit: done, Result: "ok", Steps: 2, TokensUsed: 21, ElapsedMs: 9000, FamilyTokens: 40, FamilyUSD: 0.75, CostUSD: 0.5,
		Denials: types.Denials{}.Add(types.Denial{Tool: "shell", Text: "shell rm", Why: `the rule "x" asks a person, and none is there`})})
	asked := 0
	f.proc = func(string) (ipc.ProcDetail, error) {
		return ipc.ProcDetail{Proc: ipc.Proc{ProcStatus: types.ProcStatus{WorkDir: "/w", Agent: "coder", Skills: []string{"go"}}, MCPDown: []string{"b: no such file"}}, Tools: []string{"shell"}, MCPMounts: []string{"/mnt/mcp/3-a", "/mnt/mcp/3-b"}}, nil
	}
	step := func(n int) ipc.StepRecord {
		return ipc.StepRecord{StepNumber: n, ModelTime: time.Second, Model: "m", StopReason: "tools_ran", TokensUsed: 10, Output: 2, CacheRead: 3, CacheWrite: 1, CostUSD: 0.25}
	}
	f.pages = func(r ipc.StepsRequest) (ipc.ListStepsResponse, error) {
		if asked++; !r.Bare {
			t.Errorf("%+v", r)
		}
		switch r.After {
		case 0:
			return ipc.ListStepsResponse{Steps: []ipc.StepRecord{step(1)}, Next: 1}, nil
		case 1:
			return ipc.ListStepsResponse{Steps: []ipc.StepRecord{step(2)}, Open: &ipc.StepAnswer{Step: 3, ModelTime: time.Second, TokensUsed: 1, Output: 1, Estimated: true}}, nil
		}
		return ipc.ListStepsResponse{Open: &ipc.StepAnswer{Step: 3, ModelTime: time.Second, TokensUsed: 1, Output: 1, Estimated: true}}, nil
	}
	f.more = func(s *ipc.Server) {
		answer(s, ipc.ListMessages, func(_ context.Context, r ipc.MessagesRequest) (ipc.MessagesResponse, error) {
			all := []ipc.ConversationMessage{{N: 1, Role: "user", From: "user", Content: "do it"}, {N: 2, Step: 1, Role: "assistant", Content: "first"},
				{N: 3, Step: 2, Role: "assistant", ToolCalls: []ipc.ConversationCall{{ID: "c", Name: "shell", Input: `{"command":`}}}, {N: 4, Step: 2, Role: "tool", ToolCallID: "c", Content: refusal + `because of the rule "x" a person`, IsError: true, Cut: 5},
				{N: 5, Role: "user", From: "steer", Content: "of the person"}, {N: 6, Role: "user", From: "message", Content: "of a friend"}}
			return ipc.MessagesResponse{Messages: all[min(r.From-1, len(all)):]}, nil
		})
	}
	f.serve()
	r := f.run("run", "--output-format", "stream-json", "do it")
	var got []string
	for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		var l map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		delete(l, "uuid")
		delete(l, "timestamp")
		if string(l["subtype"]) == `"rnix_event"` {
			got = append(got, "event")
			continue
		}
		b, _ := json.Marshal(l)
		got = append(got, string(b))
	}
	session := `"session_id":"` + id(3).String() + `"`
	message := `"parent_tool_use_id":null,` + session + `,"type":`
	usage := `"usage":{"input_tokens":4,"output_tokens":2,"cache_creation_input_tokens":1,"cache_read_input_tokens":3}}`
	msg := `"message":{"id":"msg_` + strings.ReplaceAll(id(3).String(), "-", "") + `_`
	want := []string{
		`{"agent":"coder","cwd":"/w","max_steps":10,"mcp_servers":[{"name":"a","status":"connected"},{"name":"b","status":"failed","why":"no such file"}],"model":"v4-flash","pid":3,"plugins":[],"provider":"deepseek",` + session + `,"skills":["go"],"slash_commands":[],"subtype":"init","tools":["shell"],"type":"system","why":"asked for"}`,
		"event", "event", "event",
		`{` + msg + `1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"first"}],"stop_reason":null,"stop_sequence":null,` + usage + `,` + message + `"assistant"}`,
		`{` + msg + `2","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"Hm.","signature":""},{"type":"tool_use","id":"c","name":"shell","input":{"unparsed":"{\"command\":"}}],"stop_reason":null,"stop_sequence":null,` + usage + `,` + message + `"assistant"}`,
		`{"cut_bytes":5,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"error (permission): because of the rule \"x\" a person","is_error":true}]},` + message + `"user"}`,
		`{"message":{"role":"user","content":[{"type":"text","text":"of a friend"}]},` + message + `"user"}`,
		"event", "event",
		`{"cost_usd":0.5,"denials":[{"tool":"shell","text":"shell rm","why":"the rule \"x\" asks a person, and none is there"}],"denied":1,"duration_api_ms":3000,"duration_ms":9000,"end":"success","exit_code":0,"exit_reason":"completed","is_error":false,` +
			`"modelUsage":{"m":{"inputTokens":8,"outputTokens":4,"cacheReadInputTokens":6,"cacheCreationInputTokens":2,"costUSD":0.5}},"num_turns":2,"ok":true,"permission_denials":[{"tool_name":"shell","tool_use_id":"c","tool_input":{"unparsed":"{\"command\":"},"text":"shell rm","why":"the rule \"x\" asks a person, and none is there"}],"pid":3,` +
			`"result":"ok",` + session + `,"stop_reason":null,"subtype":"success","terminal_reason":"completed","tokens_used":21,"total_cost_usd":0.75,"type":"result",` +
			`"usage":{"input_tokens":8,"output_tokens":5,"cache_creation_input_tokens":2,"cache_read_input_tokens":6,"estimated":true}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" || r.err != "" {
		t.Errorf("%s(-want +got):\n%s", r.err, diff)
	}
	if asked > 6 {
		t.Errorf("steps were asked for %d times", asked)
	}
}

// Where the daemon goes away, the last line says what the stream has read of the process.
func TestAStreamWithoutADaemonEndsWithWhatItHasRead(t *testing.T) {
	f := newFake(t)
	f.theRun(nil, ipc.WaitResponse{})
	f.events = func(ctx context.Context, _ ipc.EventsRequest, out *ipc.Stream) error {
		e := event.Event{Seq: 101, Kind: event.StepEnded, PID: 3, UUID: id(3), Step: 1}
		_ = out.SendRaw(e.Seq, string(e.Kind), event.AppendJSON(nil, &e))
		<-ctx.Done()
		return context.Cause(ctx)
	}
	f.wait = func(ctx context.Context, _ ipc.WaitRequest) (ipc.WaitResponse, error) {
		<-ctx.Done()
		return ipc.WaitResponse{}, types.Errorf(types.ErrUnavailable, "Wait", "", "it stops")
	}
	f.steps = ipc.ListStepsResponse{Steps: []ipc.StepRecord{{StepNumber: 1, Model: "m", TokensUsed: 10, Output: 2, CostUSD: 0.25}}}
	read := make(chan struct{})
	f.more = func(s *ipc.Server) {
		answer(s, ipc.ListMessages, func(context.Context, ipc.MessagesRequest) (ipc.MessagesResponse, error) {
			return ipc.MessagesResponse{}, nil
		})
	}
	f.pages = func(ipc.StepsRequest) (ipc.ListStepsResponse, error) {
		close(read)
		return f.steps, nil
	}
	f.serve()
	answered := make(chan ran)
	go func() { answered <- f.run("run", "--output-format", "stream-json", "do it") }()
	<-read
	f.stopped()
	r := <-answered
	var got resultLine
	if err := json.Unmarshal([]byte(lastLine(r.out)), &got); err != nil {
		t.Fatal(err)
	}
	if r.code != ExitSuspended || got.End != "suspended" || got.Turns != 1 || got.Tokens != 10 || got.CostUSD == nil || *got.CostUSD != 0.25 || got.PID != 3 || got.SessionID != id(3).String() || got.Usage == nil || got.Usage.Output != 2 {
		t.Errorf("%d: %s", r.code, lastLine(r.out))
	}
}
