package harness

import (
	"context"
	"encoding/json"
	"sync"

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

	turn   chan struct{} // has room for one: who holds it may use what follows
	child  *child        // nil = none runs
	where  crumbs        // where its state.json is
	shut   func()        // takes its credential away
	lines  harness.Lines
	cliID  string           // the command line's own id of the session; empty = not known
	before llm.Usage        // what its earlier runs have used, as the answers say
	told   int              // messages of the conversation that it knows
	open   map[string]*call // calls of the last answer, by their id
	later  []string         // what the user said meanwhile, for one that cannot be told while it works
	last   *llm.LLMResponse // an answer that may not have reached the conversation
	had    int              // messages of the conversation when it was given
	idle   bool             // it has answered, and waits for what it is told next
	turnState

	mu    sync.Mutex
	tools []llm.ToolSpec // +checklocks:mu; what it may call
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
	if s.last != nil && len(req.Messages) == s.had { // it was given, and not taken
		return s.last, nil
	}
	s.last = nil
	s.offer(req.Tools)
	if s.child == nil || s.child.gone() && len(s.child.lines) == 0 {
		if err := s.start(ctx, req, emit); err != nil {
			return nil, err
		}
	} else {
		s.deliver(req.Messages)
	}
	resp, err := s.pump(ctx, req, emit)
	if err != nil {
		return nil, err
	}
	resp.Provider = s.cfg.Name
	resp.Blocks = s.mark(req)
	s.last, s.had = resp, len(req.Messages)
	return resp, nil
}

// place is what an answer says of where its session is. Part of the on-disk format.
type place struct {
	Session string    `json:"session"`       // the command line's own id
	UUID    string    `json:"uuid"`          // of the process: a fork is another one
	Dir     string    `json:"dir"`           // sessions of command lines are bound to their directory
	Used    llm.Usage `json:"used,omitzero"` // by the session, up to this answer
}

// mark is what an answer carries for whoever goes on later.
func (s *session) mark(req *llm.LLMRequest) []rnixctx.Block {
	data, err := json.Marshal(place{Session: s.cliID, UUID: s.id, Dir: req.WorkDir, Used: sum(s.before, sum(s.counted, s.usage))})
	if err != nil || s.cliID == "" { // the former cannot be: it holds texts
		return nil
	}
	return []rnixctx.Block{{Provider: s.blockName(), Data: data}}
}

func (s *session) blockName() string { return "harness-" + s.cfg.CLI.Name() }

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
func (s *session) start(ctx context.Context, req *llm.LLMRequest, emit func(llm.StreamEvent)) error {
	note := noting(emit)
	if s.child != nil {
		emit(llm.StreamEvent{Type: llm.EventReasoning, Text: "[" + s.cfg.CLI.Name() + " has ended meanwhile and is started again]\n"})
		s.drop()
	}
	resume, since, used := s.wasAt(req)
	prompt := llm.Transcript(req.Messages)
	if resume != "" {
		prompt = goOn(req.Messages[since:], callsBefore(req.Messages, since))
	}
	dir := s.cfg.Dir(s.id)
	if err := privateDir(dir); err != nil {
		return err
	}
	servers, config, shut, err := s.cfg.Bridge.open(s, dir)
	if err != nil {
		return err
	}
	s.where = s.crumbs(req)
	note(s.where.begin())
	spec := s.cfg.spec(req, prompt, resume)
	spec.MCPServers = servers
	cmd, err := s.cfg.CLI.Command(spec, harness.Place{Program: s.cfg.Program, Dir: dir, MCPConfig: config, Trusted: s.cfg.Trusted != nil && s.cfg.Trusted(ctx),
		Env: func(name string) string { v, _ := llm.SecretFrom(ctx, name); return v }})
	if err == nil {
		cmd.Args = append(cmd.Args, s.cfg.ExtraArgs...)
		err = writeFiles(dir, cmd.Files)
	}
	if err == nil {
		s.child, err = launch(ctx, s.cfg.Start, cmd, req.WorkDir)
	}
	if err != nil {
		shut()
		if types.CodeOf(err) == types.ErrNotFound {
			err = types.Errorf(types.ErrNotFound, "Call", s.cfg.Name, "%w; install %s, or name the program in providers.yaml", err, s.cfg.CLI.Name())
		}
		return err
	}
	s.shut = shut
	s.before, s.told, s.idle, s.resumed = used, len(req.Messages), false, resume != ""
	s.lines = s.cfg.CLI.Lines(agent.UsageEvent{Input: used.Input, Output: used.Output, CacheRead: used.CacheRead, CacheWrite: used.CacheWrite, Total: true})
	if s.turnState.begin(); cmd.KeepStdin {
		s.unheard = 1 // the prompt
	}
	return nil
}

// drop forgets a child that has ended.
func (s *session) drop() {
	if s.child != nil {
		s.child.stop(false)
		s.child = nil
		s.shut()
	}
	s.open, s.later = nil, nil // what was said is in the conversation, of which the next one is told
}

// wasAt returns the command line's own id of a session that can go on, which messages it has not seen (the
// index of the first), and what it has used. "" if there is none: nothing was answered yet, or it was another process's, or in
// another directory.
func (s *session) wasAt(req *llm.LLMRequest) (id string, since int, used llm.Usage) {
	if !s.cfg.CLI.Can().Resume || s.lost {
		return "", 0, used
	}
	for i := len(req.Messages) - 1; i >= 0; i-- {
		for _, b := range req.Messages[i].Reasoning {
			var p place
			if b.Provider == s.blockName() && json.Unmarshal(b.Data, &p) == nil {
				if p.UUID != s.id || p.Dir != req.WorkDir || p.Session == "" {
					return "", 0, used
				}
				return p.Session, i + 1, p.Used
			}
		}
	}
	if id := s.crumbs(req).session(); id != "" { // it has begun, and nothing that it said is on record
		return id, len(req.Messages), used
	}
	return "", 0, used
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
func (s *session) deliver(ms []rnixctx.Message) {
	if s.told > len(ms) { // the conversation was made shorter; what it knows, it knows
		s.told = len(ms)
	}
	for i := range ms[s.told:] {
		m := &ms[s.told+i]
		switch m.Role {
		case rnixctx.RoleTool:
			if c := s.open[m.ToolCallID]; c != nil {
				c.answer <- answer{m.Content, m.IsError}
			}
		case rnixctx.RoleUser:
			s.say(m.Content)
		}
	}
	s.told, s.open = len(ms), nil
}

// say tells the command line something, now or when it has ended its turn.
func (s *session) say(text string) {
	line, err := s.cfg.CLI.Steer(text)
	if err != nil || s.child.Stdin() == nil {
		s.later = append(s.later, text)
		return
	}
	s.idle = false
	s.unheard++
	s.child.say(line)
}

// end ends the session: the request under way, the command line, and its credential.
func (s *session) end() {
	s.once.Do(func() { close(s.over) })
	s.turn <- struct{}{} // a request under way gives it back soon
	defer func() { <-s.turn }()
	if s.child != nil {
		s.child.stop(s.idle)
		s.child = nil
		s.shut()
	}
}
