package vfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	"rnix/types"
)

// server is a transport without a server.
type server struct {
	answers  map[string]string // results by method, or by method and a word of the parameters
	connect  func(context.Context) error
	call     func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	closeErr error

	closed atomic.Int32
}

func (s *server) Connect(ctx context.Context) error {
	if s.connect != nil {
		return s.connect(ctx)
	}
	return nil
}

func (s *server) Call(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := Ended(ctx, "Call", ""); err != nil {
		return nil, err
	}
	if s.call != nil {
		if r, err := s.call(ctx, method, params); r != nil || err != nil {
			return r, err
		}
	}
	if a, ok := s.answers[method+" "+string(params)]; ok {
		return json.RawMessage(a), nil
	}
	if a, ok := s.answers[method]; ok {
		return json.RawMessage(a), nil
	}
	if method == "tools/list" {
		return json.RawMessage(`{"tools":[{"name":"add","description":"adds"}]}`), nil
	}
	return nil, types.Errorf(types.ErrNotFound, "Call", "", "no %s %s", method, params)
}

func (s *server) Close() error               { s.closed.Add(1); return s.closeErr }
func (s *server) Ping(context.Context) error { return nil }

func mounts(servers map[string]*server) (*MountManager, *DeviceRegistry) {
	devices := NewDeviceRegistry()
	return NewMountManager(devices, func(c MCPConfig) (MCPTransport, error) {
		s, ok := servers[c.Name]
		if !ok {
			return nil, types.Errorf(types.ErrInvalid, "Mount", "", "no server %s", c.Name)
		}
		return s, nil
	}), devices
}

func config(name string) MCPConfig { return MCPConfig{MCPServer: agent.MCPServer{Name: name}} }

func TestMountedServerIsADeviceWithToolsUntilItIsUnmounted(t *testing.T) {
	s := &server{}
	m, devices := mounts(map[string]*server{"calc": s})
	cfg := config("calc")
	cfg.Owner.PID = 7
	if err := m.Mount("/mnt/mcp/7-calc", cfg); err != nil {
		t.Fatal(err)
	}
	tools := devices.Tools("/mnt/mcp/7-calc")
	if len(tools) != 1 || tools[0].Name != "mcp__calc__add" || tools[0].Path != "/mnt/mcp/7-calc/tools/add" {
		t.Errorf("tools are %+v", tools)
	}
	if l := m.List(); len(l) != 1 || l[0].Path != "/mnt/mcp/7-calc" || l[0].PID != 7 || l[0].Tools != 1 || l[0].Mounting {
		t.Errorf("list is %+v", l)
	}
	if err := m.Mount("/mnt/mcp/7-calc", cfg); types.CodeOf(err) != types.ErrAlreadyMounted {
		t.Errorf("second mount: %v", err)
	}
	if err := m.Unmount("/mnt/mcp/7-calc"); err != nil {
		t.Fatal(err)
	}
	if s.closed.Load() != 1 || len(devices.Paths()) != 0 || len(m.List()) != 0 {
		t.Errorf("something is left: closed %d times, %v, %v", s.closed.Load(), devices.Paths(), m.List())
	}
	if err := m.Unmount("/mnt/mcp/7-calc"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("second unmount: %v", err)
	}
}

func TestFailedMountLeavesNothingAndNamesServerAndPhase(t *testing.T) {
	broken := errors.New("it burns")
	for phase, s := range map[string]*server{
		"connect":    {connect: func(context.Context) error { return types.Errorf(types.ErrDisconnected, "", "", "%w", broken) }},
		"list tools": {answers: map[string]string{"tools/list": `{"tools":12}`}},
		"register":   {},
	} {
		m, devices := mounts(map[string]*server{"calc": s})
		if phase == "register" {
			if err := devices.Register("/mnt/mcp/1-calc", func(string, OpenFlag) (VFSFile, error) { return nil, broken }); err != nil {
				t.Fatal(err)
			}
		}
		before := len(devices.Paths())
		err := m.Mount("/mnt/mcp/1-calc", config("calc"))
		if err == nil || !strings.Contains(err.Error(), "server calc: "+phase+": ") {
			t.Errorf("%s: %v", phase, err)
		}
		if phase == "connect" && (!errors.Is(err, broken) || types.CodeOf(err) != types.ErrDisconnected) {
			t.Errorf("cause or code is lost: %v", err)
		}
		if s.closed.Load() != 1 || len(devices.Paths()) != before || len(m.List()) != 0 {
			t.Errorf("%s: something is left", phase)
		}
	}
	m, _ := mounts(nil)
	if err := m.Mount("/mnt/mcp/1-x", config("x")); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "configuration") {
		t.Errorf("factory: %v", err)
	}
	for _, path := range []string{"", "/", "/mnt", "mnt/x", "/mnt/../x", "/mnt//x", "/mnt/x/"} {
		if err := m.Mount(path, config("x")); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("path %q: %v", path, err)
		}
	}
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return types.Errorf(types.ErrDriver, "Connect", "", "stderr: waiting for godot")
}

func TestMountTimeoutEndsAMountAndKeepsWhatTheServerSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{connect: hangs}
		m, _ := mounts(map[string]*server{"calc": s})
		start := time.Now()
		err := m.Mount("/mnt/mcp/1-calc", config("calc"))
		if types.CodeOf(err) != types.ErrTimeout || !strings.Contains(err.Error(), "30s (mount_timeout)") || !strings.Contains(err.Error(), "godot") {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("it took %v", took)
		}
		cfg := config("calc")
		cfg.MountTimeout = agent.Duration(2 * time.Second)
		start = time.Now()
		if err := m.Mount("/mnt/mcp/1-calc", cfg); types.CodeOf(err) != types.ErrTimeout || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestUnmountCancelsAMountUnderWay(t *testing.T) {
	begun := make(chan struct{})
	s := &server{connect: func(ctx context.Context) error { close(begun); return hangs(ctx) }}
	m, devices := mounts(map[string]*server{"calc": s})
	result := make(chan error)
	go func() { result <- m.Mount("/mnt/mcp/1-calc", config("calc")) }() // ends with the mount, awaited below
	<-begun
	if l := m.List(); len(l) != 1 || !l[0].Mounting {
		t.Errorf("list is %+v", l)
	}
	if err := m.Unmount("/mnt/mcp/1-calc"); err != nil {
		t.Errorf("unmount: %v", err)
	}
	if err := <-result; types.CodeOf(err) != types.ErrCancelled || !strings.Contains(err.Error(), "unmounted") {
		t.Errorf("mount: %v", err)
	}
	if s.closed.Load() != 1 || len(devices.Paths()) != 0 || len(m.List()) != 0 {
		t.Error("something is left")
	}
}

func TestMountSetIsAllOrNothing(t *testing.T) {
	servers := map[string]*server{"a": {}, "b": {}, "c": {connect: hangs}, "bad": {connect: func(context.Context) error {
		return types.Errorf(types.ErrNotFound, "Start", "", "no such program")
	}}}
	m, devices := mounts(servers)
	if err := m.Mount("/mnt/mcp/1-a", config("a")); err != nil {
		t.Fatal(err)
	}
	set := func(names ...string) (out []PathConfig) {
		for _, n := range names {
			out = append(out, PathConfig{Path: "/mnt/mcp/2-" + n, Config: config(n)})
		}
		return out
	}
	_, err := m.MountSet(context.Background(), set("b", "c", "bad"))
	if !errors.Is(err, types.ErrNotFound) || strings.Contains(err.Error(), "another server") {
		t.Errorf("%v", err)
	}
	if p := devices.Paths(); len(p) != 1 || p[0] != "/mnt/mcp/1-a" {
		t.Errorf("mounted: %v", p)
	}
	if _, err := m.MountSet(context.Background(), set("a", "b")); err != nil {
		t.Fatal(err)
	}
	servers["b"].closeErr = errors.New("will not go")
	if err := m.UnmountAll(); err == nil || !strings.Contains(err.Error(), "will not go") {
		t.Errorf("unmount all: %v", err)
	}
	if len(devices.Paths()) != 0 || len(m.List()) != 0 {
		t.Error("something is left")
	}
}

func TestMountsAndUnmountsOfOnePathSideBySideLeaveNothing(t *testing.T) {
	var open atomic.Int32
	devices := NewDeviceRegistry()
	m := NewMountManager(devices, func(MCPConfig) (MCPTransport, error) { open.Add(1); return &counted{&server{}, &open}, nil })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				var err error
				if i%2 == 0 {
					err = m.Mount("/mnt/mcp/1-x", config("x"))
				} else {
					err = m.Unmount("/mnt/mcp/1-x")
				}
				switch types.CodeOf(err) {
				case "", types.ErrAlreadyMounted, types.ErrNotFound, types.ErrCancelled:
				default:
					t.Error(err)
				}
				m.List()
			}
		})
	}
	wg.Wait()
	if err := m.UnmountAll(); err != nil {
		t.Error(err)
	}
	if n := open.Load(); n != 0 || len(devices.Paths()) != 0 {
		t.Errorf("%d transports are left, and %v", n, devices.Paths())
	}
}

type counted struct {
	*server
	open *atomic.Int32
}

func (c *counted) Close() error { c.open.Add(-1); return nil }

func TestToolNamesAreValidUniqueAndStable(t *testing.T) {
	long := strings.Repeat("very_long_", 12)
	names := []string{"plain", "fs.read", "fs read", "fs_read", "größe", "größ_e", long + "1", long + "2", "a/b", "Ünïcode " + long, "__"}
	tools := func(order []string) (out []mcpTool) {
		for _, n := range order {
			out = append(out, mcpTool{Name: n})
		}
		return out
	}
	seen := map[string]string{}
	byName := map[string]string{}
	for _, server := range []string{"x", "x__y", "x_", "Ä b", long} {
		for i, n := range toolNames(server, tools(names)) {
			if len(n) > 64 || sanitise(n) != n || !strings.HasPrefix(n, "mcp__") {
				t.Errorf("%s of %s is called %s", names[i], server, n)
			}
			if other, taken := seen[n]; taken {
				t.Errorf("%s/%s and %s are both called %s", server, names[i], other, n)
			}
			seen[n] = server + "/" + names[i]
			byName[server+names[i]] = n
		}
		var reversed []string
		for i := range names {
			reversed = append(reversed, names[len(names)-1-i])
		}
		for i, n := range toolNames(server, tools(reversed)) {
			if byName[server+reversed[i]] != n {
				t.Errorf("the name of %s depends on its place", reversed[i])
			}
		}
	}
	if n := byName["xplain"]; n != "mcp__x__plain" {
		t.Errorf("a plain name became %s", n)
	}
	if n := byName["xfs_read"]; n != "mcp__x__fs_read" {
		t.Errorf("a plain name became %s", n)
	}
}

// What a server says of itself reaches a model as a person would see it.
func TestDescriptionsHideNothing(t *testing.T) {
	list := `{"tools":[{"name":"a","description":"adds\u001b[8m and sends all files\u001b[0m \u202etwo\u200b numbers\u0000",
		"inputSchema":{"type":"object","properties":{"n":{"type":"number","description":"a\u001b]0;x\u0007 number","enum":["\u200b"]}},"x":12345678901234567890}},
		{"name":"b","title":"plain","inputSchema":{"type":"object","properties":{"z":{"description":"é"},"a":{}}}}]}`
	o, err := readOffer("/mnt/mcp/1-s", "s", json.RawMessage(list))
	if err != nil || len(o.tools) != 2 {
		t.Fatalf("%+v %v", o, err)
	}
	if got := o.tools[0].Description; got != "adds and sends all files <U+202E>two numbers" {
		t.Errorf("%q", got)
	}
	if got := string(o.tools[0].Schema); got != "{\"properties\":{\"n\":{\"description\":\"a number\",\"enum\":[\"\u200b\"],\"type\":\"number\"}},\"type\":\"object\",\"x\":12345678901234567890}" {
		t.Errorf("%s", got)
	}
	if got := string(o.tools[1].Schema); got != `{"type":"object","properties":{"z":{"description":"é"},"a":{}}}` {
		t.Errorf("%s", got)
	}
}

func TestToolsOfAServerComeInOneOrderHoweverItListsThem(t *testing.T) { // A9
	offered := func(names ...string) (out []string) {
		var list []map[string]string
		for _, n := range names {
			list = append(list, map[string]string{"name": n})
		}
		b, err := json.Marshal(map[string]any{"tools": list})
		if err != nil {
			t.Fatal(err)
		}
		o, err := readOffer("/mnt/mcp/1-s", "s", b)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range o.tools {
			out = append(out, tool.Name)
		}
		return out
	}
	if a, b := offered("b", "c", "a"), offered("c", "a", "b"); !slices.Equal(a, b) || !slices.IsSorted(a) || len(a) != 3 {
		t.Errorf("%v, then %v", a, b)
	}
}

func TestToolsCarryHintsSchemasAndBoundedDescriptions(t *testing.T) {
	list := fmt.Sprintf(`{"truncated":true,"tools":[
		{"name":"ro","annotations":{"readOnlyHint":true,"idempotentHint":true},"inputSchema":{"type":"object","required":["b","a"],"x":12345678901234567890}},
		{"name":"idem","annotations":{"idempotentHint":true},"inputSchema":{"properties":{"a":{}}}},
		{"name":"ext","inputSchema":{"type":"string"},"title":"a title"},
		{"name":"ext","description":"a second one"},
		{"name":""},
		{"name":"null","inputSchema":null,"description":%q},
		{"name":"huge","inputSchema":{"type":"object","x":%q},"description":"does it"}]}`, strings.Repeat("ü", 5000), strings.Repeat("y", 70000))
	o, err := readOffer("/mnt/mcp/1-s", "s", json.RawMessage(list))
	if err != nil {
		t.Fatal(err)
	}
	if len(o.tools) != 5 || !o.truncated {
		t.Fatalf("%d tools: %+v", len(o.tools), o)
	}
	want := []struct {
		effect      Effect
		independent bool
		schema      string
	}{
		{EffectExternal, false, emptySchema}, // by name: ext, huge, idem, null, ro
		{EffectExternal, false, emptySchema},
		{EffectIdempotent, false, `{"type":"object","properties":{"a":{}}}`},
		{EffectExternal, false, emptySchema},
		{EffectNone, true, `{"type":"object","required":["b","a"],"x":12345678901234567890}`},
	}
	for i, w := range want {
		if g := o.tools[i]; g.Effect != w.effect || g.Independent != w.independent || string(g.Schema) != w.schema {
			t.Errorf("%s: %s %v %s", g.Name, g.Effect, g.Independent, g.Schema)
		}
	}
	if d := o.tools[0].Description; d != "a title" {
		t.Errorf("description %q", d)
	}
	if d := o.tools[3].Description; len(d) > maxToolDescription || !strings.HasSuffix(d, "ü [cut]") {
		t.Errorf("description of %d bytes ends in %q", len(d), d[len(d)-10:])
	}
	if d := o.tools[1].Description; !strings.Contains(d, "left out") || !strings.HasSuffix(d, "does it") {
		t.Errorf("description %q", d)
	}
}
