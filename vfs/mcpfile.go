package vfs

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"

	"rnix/types"
)

const (
	defaultMaxOutput = 1 << 20 // bytes of one answer, if the configuration does not say
	maxToolInput     = 4 << 20 // bytes of one input
)

// mcpFiles are the files of one mounted server:
//
//	/                 ["tools","resources"]
//	/tools            the list of tools
//	/tools/<name>     Write calls the tool with the input, Read returns what it answered; opened for reading, what it
//	                  answered last
//	/resources        the list of resources
//	/resources/<uri>  the resource; everything after the slash is the URI, as it stands
//
// A list or a resource that is opened for reading is fetched by the open, for Read must not wait; the
// transport's own time limit, or an unmount, bounds that. Opened for writing as well, it is fetched by
// Write, of {} or nothing, which can be cancelled.
type mcpFiles struct {
	server *served
	limit  int // bytes of one answer
	last   *lastResults
}

// mcpFileFactory opens the files of a server.
func mcpFileFactory(server *served) VFSFileFactory {
	last := newLastResults(4 * server.limit())
	return func(subpath string, flags OpenFlag) (VFSFile, error) {
		return mcpFiles{server: server, limit: server.limit(), last: last}.open(subpath, flags)
	}
}

func (m mcpFiles) open(subpath string, flags OpenFlag) (VFSFile, error) {
	switch {
	case subpath == "" || subpath == "/":
		return &mcpContent{name: "/", data: []byte(`["tools","resources"]`), names: []string{"resources/", "tools/"}}, nil
	case subpath == "/tools" || subpath == "/tools/":
		if !flags.CanWrite() { // known since the mount
			list, err := m.server.told()
			if err != nil {
				return nil, err
			}
			return listed("tools", list, m.limit)
		}
		return m.fetched("tools", flags, m.list("tools/list", "tools"))
	case subpath == "/resources" || subpath == "/resources/":
		if !flags.CanWrite() {
			list, err := m.ask(context.Background(), "resources/list", nil) // the transport has its own time limit
			if err != nil {
				return nil, err
			}
			return listed("resources", list, m.limit)
		}
		return m.fetched("resources", flags, m.list("resources/list", "resources"))
	}
	if name, ok := strings.CutPrefix(subpath, "/tools/"); ok {
		if !flags.CanWrite() {
			text, err := m.last.of(name)
			return &mcpContent{name: name, data: text, err: err}, nil
		}
		return NewRequestFile(FileStat{Name: name, Size: -1, Mode: "rw-", Type: "mcp"}, m.call(name)), nil
	}
	if uri, ok := strings.CutPrefix(subpath, "/resources/"); ok {
		return m.fetched(uri, flags, m.read(uri))
	}
	return nil, types.Errorf(types.ErrNotFound, "Open", "", "a server has tools and resources, and nothing else: open tools/<name> or resources/<uri>")
}

// ask performs a method on the server as it is now.
func (m mcpFiles) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	transport, err := m.server.connection(ctx)
	if err != nil {
		return nil, err
	}
	return transport.Call(ctx, method, params)
}

// listed returns a file with the result of a list.
func listed(key string, list json.RawMessage, limit int) (VFSFile, error) {
	text, err := listText(list, key, limit)
	if err != nil {
		return nil, err
	}
	return &mcpContent{name: key, data: text, names: listNames(list, key)}, nil
}

// fetch gets a document from the server.
type fetch func(ctx context.Context) ([]byte, error)

// fetched returns a file with what get returns: at once, or by a Write.
func (m mcpFiles) fetched(name string, flags OpenFlag, get fetch) (VFSFile, error) {
	if !flags.CanWrite() {
		data, err := get(context.Background()) // the transport has its own time limit
		if err != nil {
			return nil, err
		}
		return &mcpContent{name: name, data: data}, nil
	}
	return NewRequestFile(FileStat{Name: name, Size: -1, Mode: "rw-", Type: "mcp"}, func(ctx context.Context, _ Caller, data []byte) ([]byte, error) {
		var none struct{}
		if input, err := toolInput(data); err != nil || DecodeRequest(input, &none) != nil {
			return nil, types.Errorf(types.ErrInvalid, "Write", "", "only {} can be written here, to fetch it again")
		}
		return get(ctx)
	}), nil
}

func (m mcpFiles) list(method, key string) fetch {
	return func(ctx context.Context) ([]byte, error) {
		result, err := m.ask(ctx, method, nil)
		if err != nil {
			return nil, err
		}
		return listText(result, key, m.limit)
	}
}

func (m mcpFiles) read(uri string) fetch {
	return func(ctx context.Context) ([]byte, error) {
		if uri != strings.ToValidUTF8(uri, "") {
			return nil, types.Errorf(types.ErrInvalid, "Open", "", "the URI of a resource must be valid UTF-8")
		}
		params, err := json.Marshal(map[string]string{"uri": uri})
		if err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Open", "", "%w", err)
		}
		result, err := m.ask(ctx, "resources/read", params)
		if err != nil {
			return nil, err
		}
		return resourceText(result, m.limit)
	}
}

func (m mcpFiles) call(name string) func(context.Context, Caller, []byte) ([]byte, error) {
	return func(ctx context.Context, _ Caller, data []byte) ([]byte, error) {
		input, err := toolInput(data)
		if err != nil {
			return nil, err
		}
		params, err := json.Marshal(struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		}{name, input})
		if err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Write", "", "%w", err)
		}
		result, err := m.ask(ctx, "tools/call", params)
		if err != nil {
			return nil, err
		}
		text, given, err := callText(result, m.limit)
		for i := range given {
			Attach(ctx, given[i].Name, given[i].Data)
		}
		m.last.set(name, text, err)
		return text, err
	}
}

// toolInput checks the input of a tool: one JSON object, or nothing, which means {}.
func toolInput(data []byte) (json.RawMessage, error) {
	body := trimSpace(data)
	switch {
	case len(body) == 0:
		return json.RawMessage("{}"), nil
	case len(body) > maxToolInput:
		return nil, types.Errorf(types.ErrInvalid, "Write", "", "the input has %d bytes; at most %d are taken", len(body), maxToolInput)
	case body[0] != '{' || !json.Valid(body):
		return nil, types.Errorf(types.ErrInvalid, "Write", "", "the input is not a JSON object: %s", capText(body, 200))
	}
	return body, nil
}

// mcpContent is a file with a fixed content.
type mcpContent struct {
	name  string
	names []string // of what is below
	err   error    // why there is no content

	mu sync.Mutex
	// +checklocks:mu
	data   []byte // what has not been read yet
	closed bool   // +checklocks:mu
}

// Read returns what is left, at most length bytes.
func (f *mcpContent) Read(length int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, types.Errorf(types.ErrInvalid, "Read", "", "%w", errFileClosed)
	case f.err != nil:
		return nil, f.err
	case len(f.data) == 0:
		return nil, io.EOF
	}
	n := len(f.data)
	if length > 0 {
		n = min(n, length)
	}
	out := f.data[:n:n]
	f.data = f.data[n:]
	return out, nil
}

// Names are those of what is below.
func (f *mcpContent) Names() []string { return f.names }

// Write is refused.
func (f *mcpContent) Write(context.Context, []byte) error {
	return types.Errorf(types.ErrPermission, "Write", "", "it can only be read")
}

// Close drops the content.
func (f *mcpContent) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data, f.closed = nil, true
	return nil
}

// Stat describes the file; its size is that of what is left.
func (f *mcpContent) Stat() (FileStat, error) {
	s := FileStat{Name: f.name, Mode: "r--", Type: "mcp"}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.Size = int64(len(f.data))
	return s, nil
}
