package mcpserve

import (
	"cmp"
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/ipc"
	"rnix/types"
)

// installSignals adds the tools that reach into a process that runs.
func (p changer) installSignals(s *mcp.Server) {
	add(s, &mcp.Tool{Name: "steer", Title: "Tell an agent something", Annotations: changes(false, false),
		Description: "Say something to an agent as the person for whom it works, while it works. It gets it before its next prompt."}, nil, p.steer)
	add(s, &mcp.Tool{Name: "send", Title: "Send an agent data", Annotations: changes(false, false),
		Description: "Put a message into the mailbox of an agent: data, not an instruction. To tell it what to do, use steer."}, nil, p.send)
	add(s, &mcp.Tool{Name: "pause", Title: "Pause an agent", Annotations: changes(false, false),
		Description: "Stop a process before its next action, until resume. Nothing is lost."}, nil, p.pause)
	add(s, &mcp.Tool{Name: "kill", Title: "End an agent", Annotations: changes(true, false),
		Description: "End a process: TERM before its next action, KILL at once. Everything until then is on record, and it can be resumed all the same."},
		map[string][]any{"signal": {"TERM", "KILL", "INT"}}, p.kill)
}

type sendIn struct {
	Process process `json:"process"`
	Text    string  `json:"text" jsonschema:"at most 1 MiB"`
	Key     string  `json:"key,omitempty" jsonschema:"a name for this sending: what is sent again with it is not put in again"`
}

type sendOut struct {
	PID    uint64 `json:"pid"`
	UUID   string `json:"uuid"`
	Number uint64 `json:"number" jsonschema:"of the message, among those to this process"`
	State  string `json:"state" jsonschema:"running, or suspended: then it gets the message when it is resumed"`
}

func (p changer) steer(ctx context.Context, in sendIn) (sendOut, string, error) {
	return p.post(ctx, ipc.Steer, in)
}

func (p changer) send(ctx context.Context, in sendIn) (sendOut, string, error) {
	return p.post(ctx, ipc.Send, in)
}

func (p changer) post(ctx context.Context, m ipc.Method[ipc.SendRequest, ipc.SendResponse], in sendIn) (out sendOut, _ string, err error) {
	if in.Text == "" {
		return out, "", types.Errorf(types.ErrInvalid, m.Name, "", "the text is empty")
	}
	r, err := call(ctx, p.Processes, m, ipc.SendRequest{Target: string(in.Process), Text: in.Text, Key: in.Key})
	return sendOut{uint64(r.PID), r.UUID.String(), r.Seq, r.State}, "", err
}

type pauseIn struct {
	Process process `json:"process"`
	Subtree bool    `json:"subtree,omitempty" jsonschema:"its descendants too"`
}

type killIn struct {
	Process process `json:"process"`
	Signal  string  `json:"signal,omitempty" jsonschema:"default TERM"`
	Subtree bool    `json:"subtree,omitempty" jsonschema:"its descendants too"`
}

type signalOut struct {
	PID      uint64 `json:"pid"`
	UUID     string `json:"uuid"`
	Affected int    `json:"affected" jsonschema:"so many processes were reached"`
	Blocked  bool   `json:"blocked,omitempty" jsonschema:"its agent blocks the signal and it works on; KILL ends it"`
	Handled  bool   `json:"handled,omitempty" jsonschema:"its agent was told of the interrupt and works on"`
}

func (p changer) pause(ctx context.Context, in pauseIn) (signalOut, string, error) {
	return p.signal(ctx, string(in.Process), types.SIGPAUSE, in.Subtree)
}

func (p changer) kill(ctx context.Context, in killIn) (out signalOut, _ string, err error) {
	sig, err := types.ParseSignal(cmp.Or(in.Signal, "TERM"))
	if err != nil {
		return out, "", err
	}
	return p.signal(ctx, string(in.Process), sig, in.Subtree)
}

func (p changer) signal(ctx context.Context, target string, sig types.Signal, subtree bool) (out signalOut, _ string, err error) {
	m := ipc.Signal
	if subtree {
		m = ipc.SignalTree
	}
	r, err := call(ctx, p.Processes, m, ipc.SignalRequest{Target: target, Signal: sig})
	if types.CodeOf(err) == types.ErrNotFound {
		err = types.Errorf(types.ErrNotFound, m.Name, "", "%w; what is only on disk, ps lists with all, and result shows", err)
	}
	return signalOut{uint64(r.PID), r.UUID.String(), r.Affected, r.Blocked, r.Handled}, "", err
}
