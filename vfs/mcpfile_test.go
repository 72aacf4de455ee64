package vfs_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// fake is a server without a connection: a tool that echoes, one that fails, one that hangs, one that
// shows all kinds of content; and resources.
type fake struct{ calls chan string }

const oddURI = "bad://with/slashes?and=query&x=%2F"

func (f fake) Connect(context.Context) error { return nil }
func (f fake) Close() error                  { return nil }
func (f fake) Ping(context.Context) error    { return nil }

func (f fake) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := vfs.Ended(ctx, "Call", ""); err != nil {
		return nil, err
	}
	var in struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &in); err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Call", "", "%w", err)
		}
	}
	if f.calls != nil {
		f.calls <- method + " " + in.Name + in.URI + string(in.Arguments)
	}
	text := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	switch method + " " + in.Name + in.URI {
	case "tools/list ":
		return json.RawMessage(`{"tools":[{"name":"echo","description":"says it again","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},
			{"name":"fail","description":"fails"},{"name":"hang","description":"hangs"},{"name":"kinds","description":"shows content"}]}`), nil
	case "tools/call echo":
		return json.RawMessage(`{"content":[{"type":"text","text":` + text(string(in.Arguments)) + `}]}`), nil
	case "tools/call fail":
		return json.RawMessage(`{"isError":true,"content":[{"type":"text","text":"disk on fire"}]}`), nil
	case "tools/call silent":
		return json.RawMessage(`{"isError":true,"content":[]}`), nil
	case "tools/call hang":
		<-ctx.Done()
		return nil, vfs.Ended(ctx, "Call", "")
	case "tools/call structured":
		return json.RawMessage(`{"content":[],"structuredContent":{"id": 12345678901234567890}}`), nil
	case "tools/call ask":
		return json.RawMessage(`{"resultType":"input_required","inputRequests":{"1":{}}}`), nil
	case "tools/call odd":
		return json.RawMessage(`[1]`), nil
	case "tools/call kinds":
		return json.RawMessage(`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},
			{"type":"audio","data":"aGVs"},{"type":"resource","resource":{"uri":"f:///x","mimeType":"text/plain","text":"inner"}},
			{"type":"resource","resource":{"uri":"f:///y","blob":"aGVsbG8="}},{"type":"resource_link","uri":"f:///z","name":"zed","size":9},{"type":"smell"}],
			"structuredContent":{"not":"shown"}}`), nil
	case "tools/call long":
		return json.RawMessage(`{"content":[{"type":"text","text":` + text(strings.Repeat("é", 400)) + `}]}`), nil
	case "resources/list ":
		return json.RawMessage(`{"resources":[{"uri":` + text(oddURI) + `,"name":"odd"}],"truncated":true}`), nil
	case "resources/read " + oddURI:
		return json.RawMessage(`{"contents":[{"uri":"x","text":"odd indeed"}]}`), nil
	case "resources/read blob":
		return json.RawMessage(`{"contents":[{"uri":"x","blob":"aGVsbG8="}]}`), nil
	case "resources/read bigblob":
		return json.RawMessage(`{"contents":[{"uri":"x","blob":"` + strings.Repeat("aGVs", 200) + `"}]}`), nil
	case "resources/read two":
		return json.RawMessage(`{"contents":[{"uri":"x","text":"one"},{"uri":"y","mimeType":"image/png","blob":"aGVsbG8="}]}`), nil
	}
	return nil, types.Errorf(types.ErrNotFound, "Call", "", "unknown %s %s%s", method, in.Name, in.URI)
}

const mountPath = "/mnt/mcp/1-fake"

func mountFake(t testing.TB, f fake) *vfs.DeviceRegistry {
	t.Helper()
	devices := vfs.NewDeviceRegistry()
	m := vfs.NewMountManager(devices, func(vfs.MCPConfig) (vfs.MCPTransport, error) { return f, nil })
	cfg := vfs.MCPConfig{MCPServer: agent.MCPServer{Name: "fake", MaxOutput: 500}}
	if err := m.Mount(mountPath, cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.UnmountAll() })
	return devices
}

func TestMCPFilesKeepTheDeviceContract(t *testing.T) {
	devices := mountFake(t, fake{})
	tools := devices.Tools(mountPath)
	vfstest.Run(t, vfstest.Device{
		Path: mountPath,
		Open: func(t testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			d := mountFake(t, fake{})
			return func(sub string, flags vfs.OpenFlag) (vfs.VFSFile, error) { return d.Open(mountPath+sub, flags) }, vfs.Caller{}
		},
		Tools: tools,
		Samples: []vfstest.Sample{
			{Tool: "mcp__fake__echo", Input: `{"a":1}`, Want: `{"a":1}`},
			{Tool: "mcp__fake__echo", Input: ``, Want: `{}`},
			{Tool: "mcp__fake__kinds", Input: `{}`, Want: "a\nb\n"},
			{Tool: "mcp__fake__fail", Input: `{}`, WantCode: types.ErrDriver},
			{Tool: "mcp__fake__hang", Name: "skip-hang", Input: `7`, WantCode: types.ErrInvalid},
			{Subpath: "", Want: `["tools","resources"]`},
			{Subpath: "/", Want: `["tools","resources"]`},
			{Subpath: "/tools", Want: `"echo"`},
			{Subpath: "/resources", Want: oddURI[:10]},
			{Subpath: "/resources", Input: "{}", Want: "more than is listed"},
			{Subpath: "/resources/" + oddURI, Want: "odd indeed"},
			{Subpath: "/resources/" + oddURI, Input: "{}", Want: "odd indeed"},
			{Subpath: "/resources/none", WantCode: types.ErrNotFound},
			{Subpath: "/tools/none", Input: "{}", WantCode: types.ErrNotFound},
			{Subpath: "/prompts", WantCode: types.ErrNotFound},
		},
		Slow:     &vfstest.Sample{Tool: "mcp__fake__hang", Input: `{}`},
		RawWrite: true, // nothing at all means {}; what is no object is refused, see below
	})
}

// run opens a path below the mount, writes input and returns what is read.
func run(t *testing.T, devices *vfs.DeviceRegistry, sub, input string) (string, error) {
	t.Helper()
	f, err := devices.Open(mountPath+sub, vfs.OpenReadWrite)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	if err := f.Write(context.Background(), []byte(input)); err != nil {
		return "", err
	}
	b, err := f.Read(0)
	if err == io.EOF {
		err = nil
	}
	return string(b), err
}

func TestToolAnswersAreTextForAModel(t *testing.T) {
	devices := mountFake(t, fake{})
	for tool, want := range map[string]string{
		"kinds": "a\nb\n[image: image/png, 5 bytes; not shown: the content is no PNG, JPEG, GIF or WebP image and no PDF, whatever the name says]\n[audio: unknown type, 3 bytes]\n[resource f:///x: text/plain, 5 bytes]\ninner\n" +
			"[resource f:///y: unknown type, 5 bytes]\n[link: f:///z, zed, 9 bytes]\n[content of unknown type \"smell\"]",
		"structured": `{"id":12345678901234567890}`,
		"long":       strings.Repeat("é", 250) + "\n[cut: 300 of 800 bytes are left out (max_output)]",
	} {
		if got, err := run(t, devices, "/tools/"+tool, "{}"); err != nil || got != want {
			t.Errorf("%s: %v\n got: %s\nwant: %s", tool, err, got, want)
		}
	}
	for tool, want := range map[string]string{"fail": "disk on fire", "silent": "without saying why", "ask": "not offered", "odd": "malformed"} {
		if _, err := run(t, devices, "/tools/"+tool, "{}"); types.CodeOf(err) != types.ErrDriver || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestToolInputIsAnObjectOrNothing(t *testing.T) {
	devices := mountFake(t, fake{})
	for _, in := range []string{"", " \n", "{}", "{ }"} {
		if got, err := run(t, devices, "/tools/echo", in); err != nil || strings.ReplaceAll(got, " ", "") != "{}" {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	if got, err := run(t, devices, "/tools/echo", `{"n": 12345678901234567890}`); err != nil || !strings.Contains(got, "12345678901234567890") {
		t.Errorf("the number lost digits: %q, %v", got, err)
	}
	for _, in := range []string{"null", "[]", `"x"`, `{"a":`, "{} {", "rm -rf /", "\x00", `{"x":"` + strings.Repeat("y", 4<<20) + `"}`} {
		if _, err := run(t, devices, "/tools/echo", in); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

func TestResourcesAreReadAsTheyAre(t *testing.T) {
	devices := mountFake(t, fake{})
	for sub, want := range map[string]string{
		"/resources/" + oddURI: "odd indeed",
		"/resources/blob":      "hello",
		"/resources/two":       "[resource x: unknown type, 3 bytes]\none\n[resource y: image/png, 5 bytes]",
	} {
		f, err := devices.Open(mountPath+sub, vfs.OpenRead)
		if err != nil {
			t.Errorf("%s: %v", sub, err)
			continue
		}
		if b, err := f.Read(0); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", sub, b, err)
		}
		_ = f.Close()
	}
	if _, err := devices.Open(mountPath+"/resources/bigblob", vfs.OpenRead); types.CodeOf(err) != types.ErrExhausted {
		t.Errorf("a blob over the limit: %v", err)
	}
	if _, err := devices.Open(mountPath+"/resources/\xff", vfs.OpenRead); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a broken URI: %v", err)
	}
}

func TestToolThatIsOnlyOpenedIsNotCalled(t *testing.T) {
	calls := make(chan string, 10)
	devices := mountFake(t, fake{calls: calls})
	<-calls // tools/list of the mount
	f, err := devices.Open(mountPath+"/tools/echo", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(0); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("read: %v", err)
	}
	_ = f.Close()
	if len(calls) != 0 {
		t.Errorf("the server was asked: %s", <-calls)
	}
}

func TestAToolOpenedForReadingGivesItsLastResult(t *testing.T) { // A9
	devices := mountFake(t, fake{calls: make(chan string, 100)})
	read := func() (string, error) {
		f, err := devices.Open(mountPath+"/tools/echo", vfs.OpenRead)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := f.Read(0)
		return string(b), err
	}
	call := func(input string) {
		f, err := devices.Open(mountPath+"/tools/echo", vfs.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Write(t.Context(), []byte(input)); err != nil {
			t.Fatal(err)
		}
	}
	for _, input := range []string{`{"n":1}`, `{"n":2}`} {
		call(input)
		for range 2 {
			if got, err := read(); err != nil || !strings.Contains(got, input) {
				t.Errorf("%q %v, want that of %s", got, err, input)
			}
		}
	}
}

func FuzzServersAnswersAreNeverTooLongAndAlwaysText(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"x"}]}`))
	f.Add([]byte(`{"isError":true,"structuredContent":1}`))
	f.Add([]byte(`{"content":[{"type":"resource"},{"type":"image","data":"="}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		devices := vfs.NewDeviceRegistry()
		m := vfs.NewMountManager(devices, func(vfs.MCPConfig) (vfs.MCPTransport, error) { return fixed(raw), nil })
		if err := m.Mount(mountPath, vfs.MCPConfig{MCPServer: agent.MCPServer{MaxOutput: 100}}); err != nil {
			return
		}
		for _, sub := range []string{"/tools/x", "/resources", "/resources/x"} {
			got, err := run(t, devices, sub, "{}")
			if err == nil && len(got) > 250 {
				t.Errorf("%s: %d bytes", sub, len(got))
			}
		}
		_ = m.UnmountAll()
	})
}

// fixed is a server that has one answer to everything.
type fixed []byte

func (f fixed) Connect(context.Context) error { return nil }
func (f fixed) Close() error                  { return nil }
func (f fixed) Ping(context.Context) error    { return nil }
func (f fixed) Call(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(f), nil
}
