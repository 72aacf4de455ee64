package vfstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

// echo is a small device that keeps the contract, or breaks one promise of it.
type echo struct {
	breaks string
	gone   chan struct{}

	mu     sync.Mutex
	closed bool   // +checklocks:mu
	asked  bool   // +checklocks:mu
	answer []byte // +checklocks:mu
}

func (e *echo) Write(ctx context.Context, data []byte) error {
	var in struct {
		Op   string `json:"op"`
		Text string `json:"text"`
		Wait bool   `json:"wait"`
	}
	if e.breaks == "panics" && !json.Valid(data) {
		panic("malformed")
	}
	if err := json.Unmarshal(data, &in); err != nil || !strings.HasPrefix(string(data), "{") {
		if e.breaks == "accepts anything" {
			return nil
		}
		if e.breaks == "plain errors" {
			return errors.New("bad input")
		}
		return types.Errorf(types.ErrInvalid, "Write", "/dev/echo", "not a JSON object")
	}
	if err := ctx.Err(); err != nil && e.breaks != "ignores context" {
		return types.Errorf(types.ErrCancelled, "Write", "/dev/echo", "%w", context.Cause(ctx))
	}
	if in.Wait {
		select {
		case <-ctx.Done():
			return types.Errorf(types.ErrCancelled, "Write", "/dev/echo", "%w", context.Cause(ctx))
		case <-e.gone:
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return types.Errorf(types.ErrInvalid, "Write", "/dev/echo", "file is closed")
	}
	e.answer, e.asked = []byte(in.Text), true
	return nil
}

func (e *echo) Read(n int) ([]byte, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || !e.asked {
		return nil, types.Errorf(types.ErrInvalid, "Read", "/dev/echo", "closed, or nothing was written")
	}
	if len(e.answer) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(e.answer) {
		n = len(e.answer)
	}
	out := e.answer[:n]
	if e.breaks == "loses bytes" {
		n = min(n+1, len(e.answer))
	}
	e.answer = e.answer[n:]
	return out, nil
}

func (e *echo) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		if e.breaks == "closes once" {
			return types.Errorf(types.ErrInvalid, "Close", "/dev/echo", "closed")
		}
		return nil
	}
	e.closed = true
	close(e.gone)
	return nil
}

func (e *echo) Stat() (vfs.FileStat, error) { return vfs.FileStat{Name: "echo"}, nil }

func device(breaks string) vfstest.Device {
	schema := `{"type":"object","properties":{"text":{"type":"string"},"wait":{"type":"boolean"}},"required":["text"]}`
	if breaks == "bad schema" {
		schema = `{"type":"object","properties":{"text":{"type":12}}}`
	}
	tool := vfs.Tool{Name: "echo", Description: "says it again", Schema: json.RawMessage(schema), Path: "/dev/echo", Op: "echo", Effect: vfs.EffectNone}
	if breaks == "bad effect" {
		tool.Effect = "harmless"
	}
	return vfstest.Device{
		Path: "/dev/echo",
		Open: func(testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			return func(sub string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
				if sub != "" {
					return nil, types.Errorf(types.ErrNotFound, "Open", "/dev/echo"+sub, "no such file")
				}
				return &echo{breaks: breaks, gone: make(chan struct{})}, nil
			}, vfs.Caller{}
		},
		Tools: []vfs.Tool{tool},
		Samples: []vfstest.Sample{
			{Tool: "echo", Input: `{"text":"hello, hello"}`, Want: "hello"},
			{Name: "missing", Subpath: "/none", WantCode: types.ErrNotFound},
		},
		Slow: &vfstest.Sample{Tool: "echo", Input: `{"text":"","wait":true}`},
	}
}

func TestDeviceThatKeepsTheContractPasses(t *testing.T) { vfstest.Run(t, device("")) }

// broken maps a broken promise to the test of the suite that must notice it.
var broken = map[string]string{
	"bad schema":       "Tools",
	"bad effect":       "Tools",
	"loses bytes":      "PiecesEqualTheWhole",
	"closes once":      "CloseAnyTimeAndTwice",
	"accepts anything": "MalformedInputIsRefused",
	"plain errors":     "MalformedInputIsRefused",
	"panics":           "MalformedInputIsRefused",
	"ignores context":  "EndedContextIsHonoured",
}

// TestSuiteNoticesEachBrokenPromise runs the suite over broken devices, in a process of its own
// because it must fail.
func TestSuiteNoticesEachBrokenPromise(t *testing.T) {
	if b := os.Getenv("VFSTEST_BREAK"); b != "" {
		vfstest.Run(t, device(b))
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for b, test := range broken {
		t.Run(strings.ReplaceAll(b, " ", "-"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, "-test.run=^TestSuiteNoticesEachBrokenPromise$/^"+test+"$")
			cmd.Env = append(os.Environ(), "VFSTEST_BREAK="+b)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("a device that %s passes the suite:\n%s", b, out)
			}
		})
	}
}
