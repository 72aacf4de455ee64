package mcpserve

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
	"rnix/ipc"
	"rnix/types"
)

// Session is a session of an agent's command line, at a daemon.
type Session struct {
	*kernelmcp.Session
	client *ipc.Client
}

// OpenSession asks the daemon that a file names for the tools of a session, over the channel of its process if this program has it. It starts no daemon. A file
// that others can read, or that is a symbolic link, is refused with the code PERMISSION. The caller must call Close.
func OpenSession(ctx context.Context, file string) (*Session, error) {
	f, err := readSessionFile(file)
	if err != nil {
		return nil, err
	}
	client := ipc.NewClient(ipc.Nearest(f.Socket, f.Road))
	r, err := ipc.Call(ctx, client, ipc.SessionTools, ipc.SessionToolsRequest{Credential: f.Credential})
	if err != nil {
		_ = client.Close()
		return nil, err
	}
	return &Session{kernelmcp.NewSession(r.Tools, func(ctx context.Context, name string, input json.RawMessage) (ipc.SessionCallResponse, error) {
		return ipc.Call(ctx, client, ipc.SessionCall, ipc.SessionCallRequest{Credential: f.Credential, Name: name, Input: input})
	}), client}, nil
}

// Close closes the connections to the daemon.
func (s *Session) Close() error { return s.client.Close() }

func (s *Session) options() *mcp.ServerOptions { return s.Options() }
func (s *Session) install(server *mcp.Server)  { s.Install(server) }
func (s *Session) lost() <-chan struct{}       { return s.Lost() }
func (s *Session) why() error                  { return s.Why() }

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
