package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/vfs"
)

// A request that a pause cuts off is not estimated: the session goes on, and its next answer counts what was used, once.
func TestWhatWasCutOffIsCountedByTheNextAnswer(t *testing.T) {
	b := newBench(t, false, begun+heard+`echo '{"kind":"usage","inputTokens":100,"outputTokens":50}'; echo '{"kind":"assistant_text","text":"I think."}'`+"\n"+
		"while [ ! -e go ]; do sleep 0.01; done\n"+shell+hang)
	gate := llm.NewGate(b.Driver, 1)
	req := llm.LLMRequest{Session: sessionID, WorkDir: b.dir, Messages: []rnixctx.Message{{Role: rnixctx.RoleUser, Content: "the task"}}}
	life := llm.WithCaller(t.Context(), vfs.Caller{UUID: sessionUUID(t)})
	ctx, cut := context.WithCancel(life)
	defer cut()
	events, err := gate.Stream(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	began := false
	for ev := range events {
		if err = ev.Err; ev.Type == llm.EventText {
			began = true
			cut()
		}
	}
	if _, billed := errors.AsType[*vfs.CutOff](err); !began || err == nil || billed {
		t.Errorf("%v, billed: %t", err, billed)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := gate.Call(life, req)
	if err != nil || r.Usage != (llm.Usage{Input: 110, Output: 55}) || len(r.Done) != 1 || len(b.starts) != 1 {
		t.Errorf("%+v %v", r, err)
	}
}
