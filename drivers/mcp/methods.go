package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rnix/types"
)

// request performs one method on a session.
type request func(ctx context.Context, s *session, params json.RawMessage) (json.RawMessage, error)

// methods are what Call offers.
var methods = map[string]request{
	"tools/call":     callTool,
	"resources/read": readResource,
	"prompts/get":    getPrompt,
	"tools/list": func(ctx context.Context, s *session, _ json.RawMessage) (json.RawMessage, error) {
		offered := s.offers(func(c *mcp.ServerCapabilities) bool { return c.Tools != nil })
		return s.pages(ctx, "tools", offered, s.lim.tools, func(ctx context.Context, cursor string) (any, error) {
			return s.client.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		})
	},
	"resources/list": func(ctx context.Context, s *session, _ json.RawMessage) (json.RawMessage, error) {
		return s.pages(ctx, "resources", s.offers(hasResources), s.lim.entries, func(ctx context.Context, cursor string) (any, error) {
			return s.client.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		})
	},
	"resources/templates/list": func(ctx context.Context, s *session, _ json.RawMessage) (json.RawMessage, error) {
		return s.pages(ctx, "resourceTemplates", s.offers(hasResources), s.lim.entries, func(ctx context.Context, cursor string) (any, error) {
			return s.client.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		})
	},
	"prompts/list": func(ctx context.Context, s *session, _ json.RawMessage) (json.RawMessage, error) {
		offered := s.offers(func(c *mcp.ServerCapabilities) bool { return c.Prompts != nil })
		return s.pages(ctx, "prompts", offered, s.lim.entries, func(ctx context.Context, cursor string) (any, error) {
			return s.client.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
		})
	},
}

func hasResources(c *mcp.ServerCapabilities) bool { return c.Resources != nil }

// offers reports whether the server says that it can do something. A server is not asked for what it
// does not offer: it might not answer at all.
func (s *session) offers(has func(*mcp.ServerCapabilities) bool) bool {
	c := s.client.InitializeResult().Capabilities
	return c != nil && has(c)
}

// callTool sends the arguments as they were written: numbers keep their digits.
func callTool(ctx context.Context, s *session, params json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := decodeParams(params, &in); err != nil {
		return nil, err
	}
	if len(in.Arguments) == 0 {
		in.Arguments = json.RawMessage("{}")
	}
	return s.keep(ctx, func(ctx context.Context) (any, error) {
		return s.client.CallTool(ctx, &mcp.CallToolParams{Name: in.Name, Arguments: in.Arguments})
	})
}

func readResource(ctx context.Context, s *session, params json.RawMessage) (json.RawMessage, error) {
	var in struct {
		URI string `json:"uri"`
	}
	if err := decodeParams(params, &in); err != nil {
		return nil, err
	}
	return s.keep(ctx, func(ctx context.Context) (any, error) {
		return s.client.ReadResource(ctx, &mcp.ReadResourceParams{URI: in.URI})
	})
}

func getPrompt(ctx context.Context, s *session, params json.RawMessage) (json.RawMessage, error) {
	var in struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := decodeParams(params, &in); err != nil {
		return nil, err
	}
	return s.keep(ctx, func(ctx context.Context) (any, error) {
		return s.client.GetPrompt(ctx, &mcp.GetPromptParams{Name: in.Name, Arguments: in.Arguments})
	})
}

func decodeParams(params json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(params))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return types.Errorf(types.ErrInvalid, "", "", "bad parameters: %w", err)
	}
	return nil
}

// keep performs a call and returns its result as the server wrote it, so that nothing is lost that the
// client's own types do not have or could not hold. A result that did not come over the wire, but from
// the client's cache, is written anew.
func (s *session) keep(ctx context.Context, do func(context.Context) (any, error)) (json.RawMessage, error) {
	watching, take := s.conn.expect(ctx)
	result, err := do(watching)
	a := take()
	switch {
	case a.err != nil:
		return nil, a.err
	case err != nil && a.unsent:
		return nil, &unsentError{err}
	case err != nil && (a.raw == nil || ctx.Err() != nil):
		return nil, err
	case a.raw != nil:
		return a.raw, nil
	}
	return json.Marshal(result)
}

// pages fetches a list to its end, or to the limits, and returns it as one result with the one key
// and, if there was more, "truncated": true and "left_out", which says which limit it has reached. A server that offers no such list has an empty one.
func (s *session) pages(ctx context.Context, key string, offered bool, most int, ask func(context.Context, string) (any, error)) (json.RawMessage, error) {
	all := []json.RawMessage{}
	leftOut, size := "", 0
	seen := map[string]bool{"": true}
	for cursor, page := "", 0; offered; page++ {
		if page == s.lim.pages {
			leftOut = fmt.Sprintf("what follows its first %d pages", s.lim.pages)
			break
		}
		raw, err := s.keep(ctx, func(ctx context.Context) (any, error) { return ask(ctx, cursor) })
		if err != nil {
			return nil, err
		}
		var fields map[string]json.RawMessage
		var items []json.RawMessage
		var next string
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, err
		}
		if err := decodeField(fields[key], &items); err != nil {
			return nil, types.Errorf(types.ErrDriver, "", "", "the server's %q is malformed: %w", key, err)
		}
		if err := decodeField(fields["nextCursor"], &next); err != nil {
			return nil, types.Errorf(types.ErrDriver, "", "", "the server's %q is malformed: %w", "nextCursor", err)
		}
		for _, item := range items {
			switch size += len(item); {
			case len(all) == most:
				leftOut = fmt.Sprintf("what follows its first %d entries", most)
			case size > s.lim.list:
				leftOut = fmt.Sprintf("what follows its first %d entries, since a list may have %d KiB", len(all), s.lim.list>>10)
			default:
				all = append(all, item)
				continue
			}
			break
		}
		if leftOut != "" || next == "" {
			break
		}
		if seen[next] { // it goes in circles
			leftOut = "what follows, since the server names the same next page again"
			break
		}
		seen[next] = true
		cursor = next
	}
	out := map[string]any{key: all}
	if leftOut != "" {
		out["truncated"], out["left_out"] = true, leftOut
	}
	return json.Marshal(out)
}

func decodeField(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into)
}
