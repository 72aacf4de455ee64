package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// Session is the tools of one session of an agent's command line: what the kernel lists, and as it lists
// it. Each call is one call of the kernel, which checks, records and runs it.
type Session struct {
	client     *ipc.Client
	credential string
	tools      []*mcp.Tool

	once   sync.Once
	gone   chan struct{} // closed when the daemon is lost
	reason error         // why; set before gone is closed
}

// OpenSession asks the daemon that a file names for the tools of a session, over the channel of its process if this program has it. It starts no daemon. A file
// that others can read, or that is a symbolic link, is refused with the code PERMISSION. The caller must call Close.
func OpenSession(ctx context.Context, file string) (*Session, error) {
	f, err := readSessionFile(file)
	if err != nil {
		return nil, err
	}
	s := &Session{client: ipc.NewClient(ipc.Nearest(f.Socket)), credential: f.Credential, gone: make(chan struct{})}
	r, err := ipc.Call(ctx, s.client, ipc.SessionTools, ipc.SessionToolsRequest{Credential: f.Credential})
	if err != nil {
		_ = s.client.Close()
		return nil, err
	}
	for _, t := range r.Tools {
		s.tools = append(s.tools, &mcp.Tool{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
	}
	return s, nil
}

// Close closes the connections to the daemon.
func (s *Session) Close() error { return s.client.Close() }

func (s *Session) options() *mcp.ServerOptions {
	return &mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}}
}

// install answers what is asked about tools itself: the protocol's server would sort them, and would
// refuse what the kernel is to refuse and to record.
func (s *Session) install(server *mcp.Server) {
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

func (s *Session) lost() <-chan struct{} { return s.gone }
func (s *Session) why() error            { <-s.gone; return s.reason }

// call has the kernel run one call. The end of ctx hangs up.
func (s *Session) call(ctx context.Context, p *mcp.CallToolParamsRaw) (mcp.Result, error) {
	r, err := ipc.Call(ctx, s.client, ipc.SessionCall, ipc.SessionCallRequest{Credential: s.credential, Name: p.Name, Input: p.Arguments})
	switch code := types.CodeOf(err); {
	case err == nil:
		return text(r.Output, r.IsError), nil
	case ctx.Err() != nil:
		return nil, err // nobody waits for it
	case code == types.ErrDisconnected || code == types.ErrUnavailable:
		s.once.Do(func() { s.reason = err; close(s.gone) })
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the kernel is gone; whether this call has run, its record says: " + err.Error()}
	}
	return text(errorText(err), true), nil
}

// text is an answer that is a text.
func text(s string, isError bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}, IsError: isError}
}

// readSessionFile reads where the kernel is, and the credential. No error shows what is in the file.
func readSessionFile(path string) (f ipc.SessionFile, err error) {
	const op = "Session"
	const mend = "start the session anew"
	data, err := readPrivate(op, path, mend)
	if err != nil {
		return f, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&f); err != nil {
		return ipc.SessionFile{}, types.Errorf(types.ErrInvalid, op, place(path, data, err), "is not the file of a session (%s); %s", shape(err), mend)
	}
	switch {
	case len(bytes.TrimSpace(data[d.InputOffset():])) > 0:
		return ipc.SessionFile{}, types.Errorf(types.ErrInvalid, op, path, "there is more after the JSON object; %s", mend)
	case !filepath.IsAbs(f.Socket):
		return ipc.SessionFile{}, types.Errorf(types.ErrInvalid, op, path, "its socket is not an absolute path; %s", mend)
	case f.Credential == "":
		return ipc.SessionFile{}, types.Errorf(types.ErrInvalid, op, path, "it has no credential; %s", mend)
	}
	return f, nil
}
