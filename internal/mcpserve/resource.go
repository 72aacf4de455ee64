package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/internal/kernelmcp"
	"rnix/ipc"
	"rnix/types"
)

// Bounds of resources.
const (
	resourceLines = 20_000
	resourceBytes = 4 << 20
)

// scheme is the beginning of the URI of every resource: what follows is a UUID and what of it.
const scheme = "rnix://proc/"

// installResources adds what can be read of each process.
func (p looker) installResources(s *mcp.Server) {
	for _, r := range []struct {
		name, title, mime, text string
		read                    func(context.Context, string) (string, error)
	}{
		{"log", "Log of an agent", "text/plain", "The log of a process: its last lines, with times and categories.", p.logText},
		{"steps", "Steps of an agent", "application/json", "The steps of a process, without their messages: what each did, and with how many tokens.", p.stepsText},
		{"result", "Result of an agent", "text/plain", "The result of a process, whole. Empty as long as it has none.", p.resultText},
	} {
		s.AddResourceTemplate(&mcp.ResourceTemplate{Name: r.name, Title: r.title, MIMEType: r.mime, Description: r.text, URITemplate: scheme + "{uuid}/" + r.name},
			func(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				uri := req.Params.URI
				text, err := r.read(ctx, strings.TrimSuffix(strings.TrimPrefix(uri, scheme), "/"+r.name))
				if types.CodeOf(err) == types.ErrNotFound {
					return nil, mcp.ResourceNotFoundError(uri)
				}
				if err != nil {
					return nil, errors.New(kernelmcp.ErrorText(err))
				}
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: r.mime, Text: text}}}, nil
			})
	}
}

func (p looker) resultText(ctx context.Context, id string) (string, error) {
	d, err := call(ctx, p.Processes, ipc.GetProcDetail, ipc.TargetRequest{Target: id})
	return d.Result, err
}

func (p looker) logText(ctx context.Context, id string) (string, error) {
	w := &logWindow{limit: resourceLines, bytes: resourceBytes, last: true}
	if err := p.readLog(ctx, id, w); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, l := range w.lines {
		fmt.Fprintf(&b, "%s [%s] %s\n", l.Time.UTC().Format(time.RFC3339), l.Category, l.Text)
	}
	return b.String(), nil
}

// stepsText returns the last steps of a process that have room, as JSON.
func (p looker) stepsText(ctx context.Context, id string) (string, error) {
	out := struct {
		PID     types.PID         `json:"pid"`
		UUID    types.UUID        `json:"uuid"`
		Omitted int               `json:"omitted,omitempty"` // earlier steps, for want of room
		Steps   []json.RawMessage `json:"steps"`
		Open    []ipc.CallIntent  `json:"interrupted,omitempty"`
		Damage  string            `json:"damage,omitempty"`
	}{Steps: []json.RawMessage{}}
	size := 0
	for req := (ipc.StepsRequest{Target: id, Last: true, Limit: ipc.PageSteps}); ; {
		r, err := call(ctx, p.Processes, ipc.ListSteps, req)
		if err != nil {
			return "", err
		}
		if req.Before == 0 {
			out.PID, out.UUID, out.Damage = r.PID, r.UUID, r.Damage
		}
		out.Open = append(r.Interrupted, out.Open...)
		for i := len(r.Steps) - 1; i >= 0 && out.Omitted == 0; i-- {
			b, err := json.Marshal(&r.Steps[i])
			if err != nil {
				return "", types.Errorf(types.ErrInternal, "steps", id, "%w", err)
			}
			if size += len(b); size > resourceBytes && len(out.Steps) > 0 {
				out.Omitted = r.Steps[i].StepNumber - r.First + 1
				break
			}
			out.Steps = append(out.Steps, b)
		}
		if out.Omitted > 0 || r.Prev == 0 || req.Before > 0 && r.Prev >= req.Before {
			break
		}
		req.Before = r.Prev
	}
	slices.Reverse(out.Steps)
	b, err := json.Marshal(out)
	if err != nil {
		return "", types.Errorf(types.ErrInternal, "steps", id, "%w", err)
	}
	return string(b), nil
}
