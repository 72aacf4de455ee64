package kernelmcp

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// Session is the tools of one session of an agent's command line: what the kernel lists, and as it lists
// it. Each call is one call of the kernel, which checks, records and runs it.
type Session struct {
	tools []*mcp.Tool
	run   Run

	once   sync.Once
	gone   chan struct{} // closed when the kernel is lost
	reason error         // why; set before gone is closed
}

// Run runs a call of a session. It ends when ctx does.
type Run = func(ctx context.Context, name string, input json.RawMessage) (ipc.SessionCallResponse, error)

// NewSession returns the session that has these tools and runs its calls so. An error of run is what the session's model is told, but for
// one with the code DISCONNECTED or UNAVAILABLE: then the kernel is gone.
func NewSession(tools []ipc.SessionTool, run Run) *Session {
	s := &Session{run: run, gone: make(chan struct{})}
	for _, t := range tools {
		s.tools = append(s.tools, &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return s
}

// Options are those of the protocol's server.
func (s *Session) Options() *mcp.ServerOptions {
	return &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}}
}

// Install answers what is asked about tools itself: the protocol's server would sort them, and would
// refuse what the kernel is to refuse and to record.
func (s *Session) Install(server *mcp.Server) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch req := req.(type) {
			case *mcp.ListToolsRequest:
				tools := s.tools
				if tools == nil {
					tools = []*mcp.Tool{}
				}
				return &mcp.ListToolsResult{Tools: tools, Cacheable: mcp.Cacheable{CacheScope: "private"}}, nil
			case *mcp.CallToolRequest:
				return s.call(ctx, req.Params)
			}
			return next(ctx, method, req)
		}
	})
}

// Lost is closed when the kernel is gone; Why says how that was noticed.
func (s *Session) Lost() <-chan struct{} { return s.gone }

// Why waits for Lost.
func (s *Session) Why() error { <-s.gone; return s.reason }

// call has the kernel run one call. The end of ctx hangs up.
func (s *Session) call(ctx context.Context, p *mcp.CallToolParamsRaw) (mcp.Result, error) {
	r, err := s.run(ctx, p.Name, p.Arguments)
	switch code := types.CodeOf(err); {
	case err == nil:
		return Text(r.Output, r.IsError), nil
	case ctx.Err() != nil:
		return nil, err // nobody waits for it
	case code == types.ErrDisconnected || code == types.ErrUnavailable:
		s.once.Do(func() { s.reason = err; close(s.gone) })
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the kernel is gone; whether this call has run, its record says: " + err.Error()}
	}
	return Text(ErrorText(err), true), nil
}

// Text is an answer that is a text.
func Text(s string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: isError}
}

// ErrorText is an error as a model reads it: its code, then what the matter is and how to mend it.
func ErrorText(err error) string { return string(types.CodeOf(err)) + ": " + err.Error() }
