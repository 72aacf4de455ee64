package harness

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/harness"
	"rnix/types"
)

// session is one conversation with a command line. What stands behind turn belongs to the request under way.
type session struct {
	cfg   *Config
	id    string        // the UUID of the process
	calls chan *call    // what its command line wants the kernel to do
	over  chan struct{} // closed by end

	once sync.Once

	turn     chan struct{} // has room for one: who holds it may use what follows
	child    *child        // nil = none runs
	judging  *judging      // what it asks before its calls; nil = it does not
	own      bool          // it has the tools that it brings along
	confined Confined      // how it is, since it was started last
	where    crumbs        // where its state.json is
	beat     time.Time     // when that was last written
	grant    *grant        // what its credential is good for
	shut     func()        // takes its credential away
	lines    harness.Lines
	cliID    string           // the command line's own id of the session; empty = not known
	before   llm.Usage        // what earlier runs of that session have used
	owed     llm.Usage        // what earlier runs have used and no answer has said
	told     int              // messages behind the last answer in the conversation that it knows
	open     map[string]*call // calls of the last answer, by their id
	last     *llm.LLMResponse // an answer that may not have reached the conversation
	answer   string           // its id
	given    int              // how often it was given
	asked    *llm.LLMRequest  // what the command line was started with
	idle     bool             // it has answered, and waits for what it is told next
	turnState

	mu sync.Mutex
	// +checklocks:mu
	tools []llm.ToolSpec // what it may call
}

func newSession(cfg *Config, id string) *session {
	return &session{cfg: cfg, id: id, calls: make(chan *call, 64), over: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// notOffered are actions of ours that a command line has no use for: it plans by itself, and ends by answering.
var notOffered = map[string]bool{"complete": true, "plan": true, "replan": true}

// perform tells the command line what is new and waits for what it wants or answers.
func (s *session) perform(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.over:
		return nil, errOver(s.cfg.Name)
	}
	select {
	case <-s.over: // both were ready
		return nil, errOver(s.cfg.Name)
	default:
	}
	told := *req
	told.Messages = describe(s.cfg.CLI, req.Messages)
	req = &told
	if s.last != nil {
		if s.given < maxGiven && !taken(s, req.Messages) {
			return s.giveAgain(req), nil
		}
		s.last, s.told = nil, 0
	}
	s.offer(req.Tools)
	if s.child == nil || s.child.spent() || s.idle && s.child.Stdin() == nil {
		if err := s.start(ctx, req, emit); err != nil {
			return nil, err
		}
	} else {
		s.deliver(req)
	}
	resp, err := s.pump(ctx, req, emit)
	if err != nil {
		return nil, err
	}
	resp.Provider = s.cfg.Name
	s.answer = rand.Text()[:12]
	resp.Blocks = s.mark(req)
	if resp.Content != "" || len(resp.ToolCalls) > 0 { // else it has no place in the conversation
		s.last, s.given = resp, 1
	}
	return resp, nil
}

// maxGiven is how often one answer is given: what is in no conversation after that is lost on the way.
const maxGiven = 8

// giveAgain gives the last answer again. What was said since stands before it in the conversation, so it is told now.
func (s *session) giveAgain(req *llm.LLMRequest) *llm.LLMResponse {
	behind := req.Messages[1+lastAnswer(req.Messages):]
	for i := min(s.told, len(behind)); i < len(behind); i++ {
		if behind[i].Role == rnixctx.RoleUser {
			s.say(req, &behind[i])
		}
	}
	s.told = len(behind)
	r := *s.last
	r.Blocks = s.mark(req)
	s.last = &r
	s.given++
	return s.last
}

// taken reports whether the last answer stands in the conversation.
func taken(s *session, ms []rnixctx.Message) bool {
	i := lastAnswer(ms)
	if i < 0 {
		return false
	}
	p, ok := s.cfg.placeOf(&ms[i])
	return ok && p.Answer == s.answer
}

// lastAnswer returns the index of the last message that is an answer, or -1.
func lastAnswer(ms []rnixctx.Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role == rnixctx.RoleAssistant {
			return i
		}
	}
	return -1
}

// place is what an answer says of where its session is. Part of the on-disk format.
type place struct {
	Session string    `json:"session"`       // the command line's own id
	UUID    string    `json:"uuid"`          // of the process: a fork is another one
	Dir     string    `json:"dir"`           // sessions of command lines are bound to their directory
	Used    llm.Usage `json:"used,omitzero"` // by the session, up to this answer
	Answer  string    `json:"answer,omitempty"`
	Unheard int       `json:"unheard,omitempty"` // of what the user has said before this answer, so many were not heard yet
}

// placeOf returns what an answer says of where its session is.
func (c *Config) placeOf(m *rnixctx.Message) (p place, ok bool) {
	for _, b := range m.Reasoning {
		if b.Provider == c.blockName() && json.Unmarshal(b.Data, &p) == nil {
			return p, true
		}
	}
	return p, false
}

// mark is what an answer carries for whoever goes on later.
func (s *session) mark(req *llm.LLMRequest) []rnixctx.Block {
	data, err := json.Marshal(place{Session: s.cliID, UUID: s.id, Dir: req.WorkDir, Used: sum(s.before, sum(s.counted, s.usage)),
		Answer: s.answer, Unheard: len(s.pending())})
	if err != nil { // it holds texts and numbers
		return nil
	}
	return []rnixctx.Block{{Provider: s.cfg.blockName(), Data: data}}
}

func (c *Config) blockName() string { return "harness-" + c.CLI.Name() }

// offer sets what the command line may call.
func (s *session) offer(specs []llm.ToolSpec) {
	tools := make([]llm.ToolSpec, 0, len(specs))
	for _, t := range specs {
		if !notOffered[t.Name] {
			tools = append(tools, t)
		}
	}
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
}

// start starts the command line: where it left off if it has been here before, else from the beginning.
func (s *session) start(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) (err error) {
	note := noting(emit)
	if s.child != nil {
		emit(llm.StreamEvent{Type: llm.EventReasoning, Text: "[" + s.cfg.CLI.Name() + " has ended meanwhile and is started again]\n"})
		s.drop(s.idle)
	}
	dir := s.cfg.Dir(s.id)
	if err := privateDir(dir); err != nil {
		return err
	}
	if s.confined, err = confine(ctx, s.cfg, dir); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.confined.Over()
		}
	}()
	at := s.wasAt(req)
	if at.Session != "" && lacks(ctx, s, req, at.Session) {
		lose(s, at.Session, "its record lacks answers that it has given", emit)
		at = origin{}
	}
	prompt, attached := opening(ctx, s, req, &at)
	if s.own, err = s.cfg.own(ctx); err != nil {
		return err
	}
	judged := s.own && s.cfg.Ruled != nil && s.cfg.Ruled(ctx)
	servers, config, grant, shut, err := s.cfg.Bridge.open(s, dir, judged)
	if err != nil {
		return err
	}
	s.where = s.crumbs(req)
	note(s.where.begin())
	spec := s.cfg.spec(req, prompt, instructions(s.cfg.CLI, req.SystemPrompt, req.Tools, s.own), at.Session, s.own)
	spec.MCPServers, spec.Attachments = servers, attached
	cmd, err := s.cfg.CLI.Command(spec, harness.Place{Judged: judged, Judge: grant.judge, Program: s.cfg.Program, Dir: dir, MCPConfig: config, Trusted: s.cfg.Trusted != nil && s.cfg.Trusted(ctx),
		Confined: s.confined.Home != "", Gateway: s.confined.Gateway, Env: func(name string) string { return s.confined.secret(ctx, s.cfg.CLI, name) }})
	if err == nil {
		cmd.Args = append(cmd.Args, s.cfg.ExtraArgs...)
		err = writeFiles(dir, cmd.Files)
	}
	if err == nil {
		s.child, err = launch(ctx, s.cfg.Start, cmd, req.WorkDir, &s.confined, grant.judging)
	}
	if err != nil {
		shut()
		grant.judging.end()
		if types.CodeOf(err) == types.ErrNotFound {
			err = types.Errorf(types.ErrNotFound, "Call", s.cfg.Name, "%w; install %s, or name the program in providers.yaml", err, s.cfg.CLI.Name())
		}
		return err
	}
	s.grant, s.shut, s.judging = grant, shut, grant.judging
	used := at.Used
	if at.Session != "" && at.Session == s.cliID { // what it has used since its last answer too
		used = s.before
	}
	s.before, s.told, s.idle, s.resumed = used, len(req.Messages)-1-lastAnswer(req.Messages), false, at.Session
	s.asked = req
	s.lines = s.cfg.CLI.Lines(agent.UsageEvent{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite, Total: true})
	if s.turnState.begin(); cmd.KeepStdin {
		s.unheard = []words{{text: prompt}}
	}
	return nil
}

// drop ends a child and forgets it; an idle one gets the time to end by itself. What it has used is in the next answer.
func (s *session) drop(idle bool) {
	if s.child != nil {
		s.shut() // from now on it wants nothing of the kernel
		s.judging.end()
		s.child.stop(idle)
		s.child = nil
		s.confined.Over()
		ran := sum(s.counted, s.usage)
		add(&s.owed, s.usage)
		add(&s.before, ran)
		s.counted, s.usage = llm.Usage{}, llm.Usage{}
	}
	s.open, s.later = nil, nil // what was said is in the conversation, of which the next one is told
}

// origin is where a session goes on.
type origin struct {
	place                    // Session is empty if none can: nothing was answered yet, or it was another process's, or in another directory
	since  int               // the index of the first message that it may not have seen
	missed []rnixctx.Message // what was said before and it may not have heard
}

// wasAt returns where the session can go on.
func (s *session) wasAt(req *llm.LLMRequest) (at origin) {
	if !s.cfg.CLI.Can().Resume || s.lost {
		return at
	}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		p, ok := s.cfg.placeOf(&req.Messages[i])
		switch {
		case !ok, p.Session == "" && p.UUID == s.id:
			continue
		case p.UUID != s.id, p.Dir != req.WorkDir, p.Session == "":
			return at
		}
		return origin{place: p, since: i + 1, missed: lastSaid(req.Messages[:i], p.Unheard)}
	}
	if id := s.crumbs(req).session(); id != "" { // it has begun, and nothing that it said is on record
		return origin{place: place{Session: id}, since: 1 + lastAnswer(req.Messages)}
	}
	return at
}

// lastSaid returns the last n messages of the user in order.
func lastSaid(ms []rnixctx.Message, n int) (said []rnixctx.Message) {
	for i := len(ms) - 1; i >= 0 && len(said) < n; i-- {
		if ms[i].Role == rnixctx.RoleUser {
			said = append(said, ms[i])
		}
	}
	slices.Reverse(said)
	return said
}

// pending returns what the user has said and the command line has not heard: it was told, or is to be.
func (t *turnState) pending() (said []words) {
	for _, w := range t.unheard {
		if w.text != prompt {
			said = append(said, w)
		}
	}
	return append(said, t.later...)
}

// callsBefore returns the calls of the last answer before a message.
func callsBefore(ms []rnixctx.Message, i int) []rnixctx.ToolCall {
	for i--; i >= 0; i-- {
		if ms[i].Role == rnixctx.RoleAssistant {
			return ms[i].ToolCalls
		}
	}
	return nil
}

// deliver gives the command line what has come since its last answer: how its calls have ended, and what was
// said to it.
func (s *session) deliver(req *llm.LLMRequest) {
	behind := req.Messages[1+lastAnswer(req.Messages):] // the conversation may have been made shorter, but not its end
	since := behind[min(s.told, len(behind)):]
	for i := range since {
		if since[i].Role == rnixctx.RoleUser {
			s.say(req, &since[i])
		}
	}
	for i := range since { // behind what was said, so that it is heard before the next request
		if c := s.open[since[i].ToolCallID]; c != nil && since[i].Role == rnixctx.RoleTool {
			c.answer <- answer{since[i].Content, since[i].IsError}
			delete(s.open, since[i].ToolCallID) // it has room for one
		}
	}
	for _, c := range s.open {
		c.answer <- answer{"the answer to this call is not in the conversation any more; look at what it has done", true}
	}
	s.told, s.open = len(behind), nil
}

// end ends the session: the request under way, the command line, and its credential.
func (s *session) end() {
	s.once.Do(func() { close(s.over) })
	s.turn <- struct{}{} // a request under way gives it back soon
	defer func() { <-s.turn }()
	s.drop(s.idle)
	s.where.ended()
}
