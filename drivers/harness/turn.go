package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/internal/proc"
	"rnix/types"
)

// turnState is what has come from a command line since its last answer to us.
type turnState struct {
	text    strings.Builder
	shown   bool // the text that comes as a whole has been shown in parts
	running map[string]tool
	done    []tool
	usage   llm.Usage
	counted llm.Usage // what earlier answers to us have counted of this run of the command line
	model   string
	began   bool               // it has said that its session has begun
	resumed string             // the session that it was told to resume
	lost    bool               // that one was not there: the next start begins anew
	hears   bool               // it says what it hears
	unheard []words            // what it was told and has not said that it has heard; the prompt is empty
	later   []words            // what the user said meanwhile, for one that cannot be told while it works
	final   *agent.ResultEvent // its turn has ended, and something is unheard
	beside  bool               // its subagents work on when its turn has ended
	more    bool               // they have ended since: it is told, and begins another turn
	number  int                // of the last call
	offers  []string           // tools that it says it has
	rogue   string             // a tool of its own that it has used, and was started without
	escaped string             // one that it has used without asking before
}

// tool is a call of one of its own tools.
type tool struct {
	use    agent.ToolUseEvent
	began  time.Time
	result *agent.ToolResultEvent
}

// begin forgets what an earlier child has left unsaid.
func (t *turnState) begin() {
	*t = turnState{running: map[string]tool{}, number: t.number, model: t.model, resumed: t.resumed, lost: t.lost}
}

// pump reads what the command line says until it wants something, has done something, or has ended its turn.
func (s *session) pump(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	quiet := time.NewTimer(patience(s))
	defer quiet.Stop()
	for {
		select {
		case line, ok := <-s.child.lines:
			if !ok {
				return s.ended(ctx, req, emit)
			}
			s.child.read(line)
			noting(emit)(s.where.alive())
			waited, beside := s.final != nil, s.beside
			for _, e := range s.lines.Line(line) {
				s.take(e, emit)
			}
			if s.rogue != "" {
				err := types.Errorf(types.ErrPermission, "Call", s.cfg.Name, "%s used %s, one of the CLI's own tools, in spite of --tools kernel, and was ended; --tools own allows it",
					s.cfg.CLI.Name(), label(s.rogue))
				s.drop(false)
				return nil, err
			}
			if s.escaped != "" {
				err := types.Errorf(types.ErrPermission, "Call", s.cfg.Name, "%s used its own tool %s without asking, in spite of the rules of permissions, and was ended; --tools kernel switches its own tools off",
					s.cfg.CLI.Name(), label(s.escaped))
				s.drop(false)
				return nil, err
			}
			if len(s.done) > 0 {
				return s.ran(), nil
			}
			if s.final != nil && (!s.final.Success || len(s.unheard) == 0 && !s.beside && !s.more) {
				return s.concluded(ctx, req, emit)
			}
			if !waited || s.final == nil || s.beside || beside { // the time to hear is not longer for one that says other things
				quiet.Reset(patience(s))
			}
		case c := <-s.calls:
			if c.waitedFor() {
				return s.wants(c), nil
			}
		case <-quiet.C:
			if s.final != nil && s.hears && len(s.pending()) > 0 { // it was told in vain
				s.later = s.pending()
				return s.again(ctx, req, emit)
			}
			if s.final != nil && !s.beside {
				return s.concluded(ctx, req, emit)
			}
			if len(s.running) > 0 || s.judging.waits() || s.child != nil && s.child.Info().Frozen { // its own command may take as long as it takes, and who stands still says nothing
				quiet.Reset(s.cfg.Silence)
				continue
			}
			if s.final != nil {
				return s.concluded(ctx, req, emit)
			}
			s.drop(false)
			return nil, types.Errorf(types.ErrTimeout, "Call", s.cfg.Name, "%s has said nothing for %v", s.cfg.CLI.Name(), s.cfg.Silence)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.over:
			return nil, errOver(s.cfg.Name)
		}
	}
}

// patience is how long it may say nothing.
func patience(s *session) time.Duration {
	if s.final != nil && !s.beside {
		return s.cfg.hearing
	}
	return s.cfg.Silence
}

// take takes one event in.
func (s *session) take(e agent.Event, emit func(llm.StreamEvent)) {
	note := func(text string) {
		emit(llm.StreamEvent{Type: llm.EventReasoning, Text: text + "\n"})
	}
	switch e := e.(type) {
	case agent.InitEvent:
		s.began, s.lost, s.offers = true, false, e.Tools
		s.cliID = e.SessionID
		if e.Model != "" {
			s.model = e.Model
		}
		noting(emit)(s.where.at(stepStreaming))
		if st := e.MCPServers[Server]; st == "failed" {
			note("[" + s.cfg.CLI.Name() + " cannot reach the kernel's tools]")
		}
	case agent.SystemEvent:
		if s.turnState.tells(&e) {
			return
		}
		note(strings.TrimSpace("[" + e.Subtype + "] " + e.Message))
	case agent.AssistantTextEvent:
		s.final, s.more = nil, false // another turn
		if e.Delta || !s.shown {
			emit(llm.StreamEvent{Type: llm.EventText, Text: e.Text})
		}
		if s.shown = e.Delta; !e.Delta {
			if s.text.Len() > 0 {
				s.text.WriteString("\n\n")
			}
			s.text.WriteString(e.Text)
		}
	case agent.ToolUseEvent:
		if !s.beside { // else it may be one of a subagent
			s.final, s.more = nil, false
		}
		if !ours(e.ToolName) {
			if forbidden(s, e.ToolName) && slices.Contains(s.offers, e.ToolName) {
				s.rogue = e.ToolName
			}
			if s.judging.unbidden(&e) {
				s.escaped = e.ToolName
			}
			s.running[e.ToolUseID] = tool{use: e, began: time.Now()}
			note("[" + e.ToolName + "] " + rnixctx.Elide(string(e.Input), 300))
		}
	case agent.ToolResultEvent:
		if t, ok := s.running[e.ToolUseID]; ok {
			delete(s.running, e.ToolUseID)
			if forbidden(s, t.use.ToolName) && !e.IsError {
				s.rogue = t.use.ToolName
			}
			if s.judging.escaped(&e, &t.use) {
				s.escaped = t.use.ToolName
			}
			t.result = &e
			s.done = append(s.done, t)
		}
	case agent.UsageEvent:
		if !e.Total {
			add(&s.usage, usageOf(&e))
			if e.Model != "" {
				s.model = e.Model
			}
		}
	case agent.ResultEvent:
		s.final = &e
		if e.Usage != nil {
			add(&s.usage, rest(usageOf(e.Usage), sum(s.counted, s.usage)))
		}
		if !s.beside {
			clear(s.running) // what has no result by now gets none
		}
	case agent.ErrorEvent:
		s.final = &agent.ResultEvent{Subtype: e.Code, Errors: []string{e.Message}}
	}
}

// forbidden reports whether a tool of its own is one that it must not have. That it asks for one that it has not, and is
// told so, is no harm.
func forbidden(s *session, name string) bool { return !s.own && !harness.Harmless(name) }

// ours reports whether a tool is one of the kernel's.
func ours(name string) bool {
	return strings.HasPrefix(name, "mcp__"+Server+"__") || strings.HasPrefix(name, Server+"_") || strings.HasPrefix(name, Server+".")
}

// answerOf makes an answer of what has come, and begins to collect anew.
func (s *session) answerOf(stop string) *llm.LLMResponse {
	r := &llm.LLMResponse{Content: s.text.String(), Usage: sum(s.owed, s.usage), Model: s.model, StopReason: stop}
	r.TokensUsed = r.Usage.Total()
	add(&s.counted, s.usage)
	s.text.Reset()
	s.usage, s.owed = llm.Usage{}, llm.Usage{}
	return r
}

// wants is the answer that the kernel is to run calls: one, and those that have come beside it.
func (s *session) wants(first *call) *llm.LLMResponse {
	r := s.answerOf("tool_use")
	s.open = map[string]*call{}
	for c := first; c != nil; {
		if c.waitedFor() {
			id := s.callID()
			s.open[id] = c
			r.ToolCalls = append(r.ToolCalls, toolCall(id, c.name, c.input))
		}
		select {
		case c = <-s.calls:
		default:
			c = nil
		}
	}
	return r
}

func (t *turnState) callID() string {
	t.number++
	return kernelCall + strconv.Itoa(t.number)
}

// toolCall makes a call whose input is an object.
func toolCall(id, name string, input json.RawMessage) rnixctx.ToolCall {
	c := rnixctx.ToolCall{ID: id, Name: name, Input: input}
	switch {
	case len(input) == 0 || string(input) == "null":
		c.Input = json.RawMessage("{}")
	case !json.Valid(input):
		c.Input, c.ParseError = json.RawMessage("{}"), "not valid JSON"
	}
	return c
}

// How ids of calls begin that are ours: of calls of the kernel, and of those whose own id cannot be one.
const (
	kernelCall   = "mcp-"
	namelessCall = "own-"
)

// maxName is how long the name or the id of a call of its own may be, in bytes.
const maxName = 100

// callName is the id of a call of its own, or what stands for one that cannot be an id.
func callName(id string) string {
	if len(id) <= maxName && !strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return namelessCall + hex.EncodeToString(sum[:8])
}

// label is the name of a tool of its own, without what a terminal could take for more.
func label(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, name)
	return rnixctx.Elide(name, maxName)
}

// reads are tools of the command lines that change nothing.
var reads = map[string]bool{"Read": true, "Grep": true, "Glob": true, "LS": true, "TodoWrite": true, "WebSearch": true, "WebFetch": true, "read": true,
	"grep": true, "glob": true, "list": true, "web_search": true}

// maxOwn bounds what is kept of the output of one of its own calls, in bytes.
const maxOwn = 64 << 10

// ran is the answer that it has run calls of its own.
func (s *session) ran() *llm.LLMResponse {
	r := s.answerOf(llm.StopRan)
	for _, own := range s.done {
		id := callName(own.use.ToolUseID)
		r.ToolCalls = append(r.ToolCalls, toolCall(id, label(own.use.ToolName), own.use.Input))
		r.Done = append(r.Done, llm.Done{ID: id, Output: rnixctx.Elide(own.result.Content, maxOwn), IsError: own.result.IsError,
			DurationMs: time.Since(own.began).Milliseconds(), Reads: reads[own.use.ToolName]})
	}
	s.done = nil
	return r
}

// concluded is what the end of a turn means: the answer, another turn for what was said meanwhile, or an error.
func (s *session) concluded(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	end := s.final
	s.final = nil
	if s.turnState.gone(end) {
		return s.anew(ctx, req, strings.Join(end.Errors, "; "), emit)
	}
	if !end.Success {
		err := s.cfg.failure(end, s.began)
		s.drop(false)
		return nil, err
	}
	if len(s.later) > 0 {
		return s.again(ctx, req, emit)
	}
	r := s.answerOf("end_turn")
	if end.Message != "" {
		r.Content = end.Message
	}
	s.idle, s.unheard = true, nil
	noting(emit)(s.where.at(stepCompleted))
	return r, nil
}

// again has a command line that could not be told while it worked go on with what was said.
func (s *session) again(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	said := together(s.later)
	s.later, s.unheard = nil, nil // said says it all
	more := *req
	more.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], rnixctx.Message{Role: rnixctx.RoleAssistant, Content: s.text.String(),
		Reasoning: s.mark(req)}, said)
	s.drop(true)
	if err := s.start(ctx, &more, emit); err != nil {
		return nil, err
	}
	s.told = len(req.Messages) - 1 - lastAnswer(req.Messages)
	return s.pump(ctx, req, emit)
}

// ended is what the end of the command line means.
func (s *session) ended(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	good := s.final != nil // it waited for more to be heard
	if !good {
		exit := s.child.stop(true) // who has closed its output is about to end
		s.take(s.lines.End(exitOf(exit, s.child.stderr.String())), emit)
		if exit.Signal != 0 { // something has ended it, which says nothing of its session
			s.resumed = ""
		}
	}
	if (good || s.final == nil) && len(s.pending()) > 0 { // its last turn was good, and it did not hear what was said since
		s.later = s.pending()
		return s.again(ctx, req, emit)
	}
	if s.final == nil {
		s.final = &agent.ResultEvent{Subtype: harness.WhyNoResult, Errors: []string{s.cfg.CLI.Name() + " ended without a result"}}
	}
	if !s.final.Success && !s.turnState.gone(s.final) { // said at once: whether it is tried again is decided elsewhere
		emit(llm.StreamEvent{Type: llm.EventReasoning, Text: "[" + rnixctx.Elide(strings.Join(s.final.Errors, "; "), 2000) + "]\n"})
	}
	return s.concluded(ctx, req, emit)
}

func exitOf(e proc.ExitInfo, stderr string) harness.Exit {
	x := harness.Exit{Code: e.Code, Signal: int(e.Signal), Stderr: stderr}
	if x.Signal != 0 {
		x.Code = -1
	}
	return x
}
