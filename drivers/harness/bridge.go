package harness

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"rnix/agent"
	"rnix/drivers/llm"
	"rnix/internal/durable"
	"rnix/internal/redact"
	"rnix/ipc"
	"rnix/runtime/mcp"
	"rnix/types"
)

// Server is the name under which the kernel is an MCP server of a session.
const Server = "rnix"

// Bridge is the way from the MCP servers of sessions to these. A session is known by a credential that is
// made for it and lies in files of mode 0600; only its hash is kept. Safe for concurrent use.
type Bridge struct {
	program string // that serves a session over stdio: this one
	socket  string
	secrets *redact.Set // has the credentials while they are worth something; see Conceal

	mu sync.Mutex
	// +checklocks:mu
	grants map[[sha256.Size]byte]*grant // by the hash of the credential
}

// grant is what a credential is good for: the calls of one run of a session's command line.
type grant struct {
	s       *session
	gone    chan struct{} // closed when the credential is taken away
	judging *judging      // what that run asks before its calls; nil = nothing
	judge   []string      // by which program it does, if it does not on its standard streams
}

// NewBridge returns a bridge. program is what is started as a session's MCP server, with the arguments
// "mcp serve --session FILE"; socket is where it finds the daemon.
func NewBridge(program, socket string) *Bridge {
	return &Bridge{program: program, socket: socket, grants: map[[sha256.Size]byte]*grant{}}
}

// Conceal has b keep its credentials in a set of secrets for as long as they open anything. It is called before the first session.
func (b *Bridge) Conceal(secrets *redact.Set) { b.secrets = secrets }

// RoadPath is where on a road the kernel is an MCP server of sessions.
const RoadPath = "/mcp"

// JudgeWord is the first argument of this program where it asks about a call of an agent's command line (harness.Place.Judge); the second is the file with
// the credential.
const JudgeWord = "__judge"

// credentialFile is the file of a session's private directory in which its MCP server finds the kernel.
const credentialFile = "kernel.json"

// open makes the credential of a session and writes its files. It returns the kernel as an MCP server of the
// session, the path of a configuration with it in claude's form, the grant, and what makes the credential worthless
// and removes the files, which may be called once. judged says that it asks about calls of its own tools.
func (b *Bridge) open(s *session, dir string, judged bool) (servers []agent.MCPServerConfig, config string, g *grant, shut func(), err error) {
	credential := rand.Text()
	file := filepath.Join(dir, credentialFile)
	key := sha256.Sum256([]byte(credential))
	g = &grant{s: s, gone: make(chan struct{})}
	if judged {
		g.judging = judge(s)
	}
	forget := func() {
		b.mu.Lock()
		delete(b.grants, key)
		b.mu.Unlock()
		b.secrets.Remove(credential)
		close(g.gone)
	}
	b.secrets.Add(redact.Secret{Name: "session-credential", Value: credential})
	b.mu.Lock()
	b.grants[key] = g
	b.mu.Unlock()
	defer func() {
		if err != nil {
			forget()
		}
	}()
	server, err := b.server(s, credential, file)
	if judged && s.cfg.CLI.Can().Hook && err == nil {
		g.judge = []string{b.program, JudgeWord, file}
		err = b.write(file, credential, s.confined.Road)
	}
	if err != nil {
		return nil, "", nil, nil, err
	}
	servers = []agent.MCPServerConfig{server}
	config, remove, err := mcp.Builder{TempDir: dir, Session: s.id}.Build(servers)
	if err != nil {
		_ = os.Remove(file) // err matters more
		return nil, "", nil, nil, err
	}
	return servers, config, g, func() {
		forget()
		remove()
		_ = os.Remove(file) // it may be gone, and is worth nothing any more
	}, nil
}

// server returns how a session finds the kernel as an MCP server: as a program, for which the credential is in a file, or at an address.
func (b *Bridge) server(s *session, credential, file string) (agent.MCPServerConfig, error) {
	if road := s.confined.Road; road != "" {
		return agent.MCPServerConfig{Name: Server, Type: agent.MCPHTTP, URL: "http://" + road + RoadPath, Headers: map[string]string{"Authorization": "Bearer " + credential}}, nil
	}
	return agent.MCPServerConfig{Name: Server, Type: agent.MCPStdio, Command: b.program, Args: []string{"mcp", "serve", "--session", file}}, b.write(file, credential, "")
}

// write writes the file in which what a session starts finds the kernel.
func (b *Bridge) write(file, credential, road string) error {
	text, err := json.Marshal(ipc.SessionFile{Socket: b.socket, Road: road, Credential: credential})
	if err == nil {
		err = durable.WriteFile(durable.OS, file, append(text, '\n'), durable.Cached)
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Call", file, "the credential of a session cannot be written: %w", err)
	}
	return nil
}

// Sweep removes what a session of a daemon that crashed may have left in its private directory: what could be
// used to act for it. What it needs to go on stays.
func Sweep(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil // most processes have none
	}
	err := os.Remove(filepath.Join(dir, credentialFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	_, rest := mcp.Sweep(dir, nil)
	return errors.Join(err, durable.RemoveTemp(durable.OS, dir), rest)
}

func (b *Bridge) find(credential string) (*grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if g := b.grants[sha256.Sum256([]byte(credential))]; g != nil {
		return g, nil
	}
	return nil, types.Errorf(types.ErrPermission, "Session", "", "no session has this credential: it ends with its process")
}

// Tools returns the conversation that a credential is for, and what it may call. PERMISSION if it is for none.
func (b *Bridge) Tools(credential string) (session string, tools []llm.ToolSpec, err error) {
	g, err := b.find(credential)
	if err != nil {
		return "", nil, err
	}
	s := g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id, s.tools, nil
}

// Call has the kernel run a call of a session, and returns what its model is told. It waits as long as the
// process does: while that is paused, for days. PERMISSION if the credential is for no session, CANCELLED if ctx, the
// session, or the run of its command line that has asked ends before the answer is there.
func (b *Bridge) Call(ctx context.Context, credential, name string, input json.RawMessage) (text string, failed bool, err error) {
	g, err := b.find(credential)
	if err != nil {
		return "", false, err
	}
	c := &call{ctx: ctx, from: g, name: name, input: input, answer: make(chan answer, 1)}
	select {
	case g.s.calls <- c:
	case <-ctx.Done():
		return "", false, types.Errorf(types.ErrCancelled, "Session", name, "given up before it was run")
	case <-g.gone:
		return "", false, errOver(name)
	case <-g.s.over:
		return "", false, errOver(name)
	}
	select {
	case a := <-c.answer:
		return a.text, a.failed, nil
	case <-ctx.Done():
		return "", false, types.Errorf(types.ErrCancelled, "Session", name, "given up; what it has begun is on record")
	case <-g.gone:
		return "", false, errOver(name)
	case <-g.s.over:
		return "", false, errOver(name)
	}
}

func errOver(name string) error {
	return types.Errorf(types.ErrCancelled, "Session", name, "the session is over")
}

// call is what a session's command line wants the kernel to do.
type call struct {
	ctx    context.Context // of who waits for the answer
	from   *grant
	name   string
	input  json.RawMessage
	answer chan answer // has room for the one answer
}

// waitedFor reports whether somebody still waits for the answer: not when the call was given up, nor when the run of the
// command line that has asked is over.
func (c *call) waitedFor() bool {
	select {
	case <-c.from.gone:
		return false
	default:
		return c.ctx.Err() == nil
	}
}

type answer struct {
	text   string
	failed bool
}
