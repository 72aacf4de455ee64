package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
	"rnix/ipc"
	"rnix/types"
)

// Processes offers the processes of a daemon to an MCP client of the user's: with tools to start, watch and
// steer them, and with their logs, steps and results as resources. What the tools can do, the commands
// of the same names can do.
type Processes struct {
	// Connect returns a client of the daemon, which it starts if none runs. It is called when the first
	// tool is, and again when that daemon has gone.
	Connect  func(context.Context) (*ipc.Client, error)
	Dir      string   // where agents work that are told no directory; absolute
	Parent   string   // the parent of what is started; empty = none
	Environ  []string // of what is started, "KEY=value"
	ReadOnly bool     // only the tools that change nothing
	Answers  bool     // and the one that answers what a person is asked: what the client says then counts as that person's word

	mu sync.Mutex
	// +checklocks:mu
	client *ipc.Client // nil until the first call
	// +checklocks:mu
	turn chan struct{} // closed when the connection is there that somebody makes; nil = nobody does
}

// instructions are what a client may tell its model about all of the tools.
const instructions = `Rnix runs AI agents as processes, on this machine. spawn starts one, which works in the background: wait for it with wait
(call that again as long as its state is "running"), look at it with ps and log, tell it something with steer. A process is
named by its PID, its UUID or the beginning of one, or its name.`

func (p *Processes) options() *mcp.ServerOptions {
	return &mcp.ServerOptions{Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}}}
}

func (p *Processes) lost() <-chan struct{} { return nil }
func (p *Processes) why() error            { return nil }

func (p *Processes) install(s *mcp.Server) {
	s.AddReceivingMiddleware(byName)
	look := looker{p}
	look.installTools(s)
	look.installAsks(s)
	look.installResources(s)
	if !p.ReadOnly {
		change := changer{look}
		change.installStarts(s)
		change.installSignals(s)
	}
	if p.Answers {
		answerer{look}.installAnswer(s)
	}
}

// looker has what changes nothing, answerer what a person says of calls that wait, changer the rest.
type (
	looker   struct{ *Processes }
	changer  struct{ looker }
	answerer struct{ looker }
)

// Close closes the connections to the daemon.
func (p *Processes) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.client == nil {
		return nil
	}
	return p.client.Close()
}

// daemon returns a client of the daemon. One that was found to reach none is not returned again.
func (p *Processes) daemon(ctx context.Context, dead *ipc.Client) (*ipc.Client, error) {
	for {
		p.mu.Lock()
		if p.client != nil && p.client != dead {
			defer p.mu.Unlock()
			return p.client, nil
		}
		wait := p.turn
		if wait == nil {
			p.turn = make(chan struct{})
		}
		p.mu.Unlock()
		if wait == nil {
			return p.connect(ctx)
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connect connects anew. It is called by one at a time.
func (p *Processes) connect(ctx context.Context) (*ipc.Client, error) {
	c, err := p.Connect(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		if p.client != nil {
			_ = p.client.Close()
		}
		p.client = c
	}
	close(p.turn)
	p.turn = nil
	return c, err
}

// call calls a method of the daemon. If nobody listened, nothing was sent, and it is called once more.
func call[Req, Resp any](ctx context.Context, p *Processes, m ipc.Method[Req, Resp], req Req) (r Resp, err error) {
	c, err := p.daemon(ctx, nil)
	if err != nil {
		return r, err
	}
	r, err = ipc.Call(ctx, c, m, req)
	var s *types.SyscallError
	if errors.As(err, &s) && s.Code == types.ErrUnavailable && s.Syscall == "Connect" {
		if c, err = p.daemon(ctx, c); err != nil {
			return r, err
		}
		r, err = ipc.Call(ctx, c, m, req)
	}
	return r, err
}

// process names a process. A number is taken for a string too (see byName).
type process string

// byName makes a string of a PID that a model has given as a number: the schema says string, since
// some clients know no type that is one of two.
func byName(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && call.Params != nil {
			call.Params.Arguments = quotePID(call.Params.Arguments)
		}
		return next(ctx, method, req)
	}
}

// quotePID puts quotes around the number that "process" is, if it is one.
func quotePID(args json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	var pid json.Number
	if json.Unmarshal(args, &fields) != nil || len(fields["process"]) == 0 || fields["process"][0] == '"' || json.Unmarshal(fields["process"], &pid) != nil || pid == "" {
		return args
	}
	fields["process"] = json.RawMessage(`"` + pid.String() + `"`)
	quoted, err := json.Marshal(fields)
	if err != nil {
		return args
	}
	return quoted
}

// schemaOf returns the schema of a type, without null, which some clients do not know beside another type.
func schemaOf[T any](enums map[string][]any) *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[process](): {Type: "string", Description: "a process: its PID, its UUID or the beginning of one, or its name"},
	}})
	if err != nil {
		panic(err) // a type of ours
	}
	for _, p := range s.Properties {
		if types := slices.DeleteFunc(p.Types, func(t string) bool { return t == "null" }); len(types) == 1 {
			p.Type, p.Types = types[0], nil
		}
	}
	for name, values := range enums {
		s.Properties[name].Enum = values
	}
	return s
}

// add adds a tool whose input and output are structs. Its errors are answers for the model, with code and mend.
func add[In, Out any](s *mcp.Server, t *mcp.Tool, enums map[string][]any, f func(context.Context, In) (Out, string, error)) {
	t.InputSchema, t.OutputSchema = schemaOf[In](enums), schemaOf[Out](nil)
	mcp.AddTool(s, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		out, words, err := f(ctx, in)
		if err != nil {
			return nil, out, errors.New(kernelmcp.ErrorText(err))
		}
		if words == "" {
			return nil, out, nil // the text is the JSON
		}
		return kernelmcp.Text(words, false), out, nil
	})
}

// looks are the annotations of a tool that changes nothing.
func looks() *mcp.ToolAnnotations {
	no := false
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &no}
}

// changes are those of one that does.
func changes(destructive, openWorld bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &openWorld}
}
