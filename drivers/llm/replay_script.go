package llm

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"rnix/types"
)

// maxScript bounds a script, in bytes.
const maxScript = 8 << 20

// replayScript is the file of a ReplayDriver.
type replayScript struct {
	path          string
	Version       string           `yaml:"version"`
	Responses     []replayResponse `yaml:"responses"`     // for every agent
	Conversations []replayTalk     `yaml:"conversations"` // or each for some

	alone replayTalk // of Responses
}

type replayResponse struct {
	Content    string         `yaml:"content"`
	Reasoning  string         `yaml:"reasoning"`
	ToolCalls  []replayCall   `yaml:"tool_calls"`
	Usage      replayUsage    `yaml:"usage"`
	StopReason string         `yaml:"stop_reason"`
	Delay      replayDuration `yaml:"delay"`
	Error      *replayError   `yaml:"error"`
}

type replayCall struct {
	ID    string    `yaml:"id"`
	Name  string    `yaml:"name"`
	Input yaml.Node `yaml:"input"`

	input string // Input as the model's text
	value any    // Input, if it is more than a text
}

// id is the call's own id, or one that is the same in every run.
func (c *replayCall) id(response, call int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("replay_%d_%d", response+1, call+1)
}

type replayUsage struct {
	Input  int `yaml:"input_tokens"`
	Output int `yaml:"output_tokens"`
	Cached int `yaml:"cached_input_tokens"`
}

type replayError struct {
	Code       string         `yaml:"code"`
	Message    string         `yaml:"message"`
	RetryAfter replayDuration `yaml:"retry_after"`
}

func (e *replayError) err(device string) error {
	if e.Code == string(types.ErrRateLimited) || e.RetryAfter > 0 {
		return types.Errorf(types.ErrCode(e.Code), "Call", device, "%w", &RateLimit{RetryAfter: time.Duration(e.RetryAfter), Message: e.Message})
	}
	return types.Errorf(types.ErrCode(e.Code), "Call", device, "%s", e.Message)
}

// replayDuration is a duration such as 200ms.
type replayDuration time.Duration

// UnmarshalYAML reads what time.ParseDuration reads.
func (d *replayDuration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 {
		return &scriptError{n.Line, n.Column, fmt.Sprintf("%q is not a duration such as 200ms or 2s", n.Value)}
	}
	*d = replayDuration(v)
	return nil
}

// scriptError is a mistake with its place.
type scriptError struct {
	line, column int
	text         string
}

// Error returns the text without the place.
func (e *scriptError) Error() string { return e.text }

// The codes and stop reasons that a script may give.
var (
	replayCodes = []string{string(types.ErrAuth), string(types.ErrRateLimited), string(types.ErrTimeout), string(types.ErrCancelled),
		string(types.ErrInvalid), string(types.ErrUnavailable), string(types.ErrDriver)}
	replayStops = []string{"", "end_turn", "tool_use", "max_tokens", "refusal", "stop_sequence", StopFailed}
)

// parseReplay reads a script and checks it.
func parseReplay(path string, src []byte) (*replayScript, error) {
	if len(src) > maxScript {
		return nil, types.Errorf(types.ErrInvalid, "Open", path, "the script is larger than %d MiB", maxScript>>20)
	}
	s := &replayScript{path: path}
	if len(bytes.TrimSpace(src)) > 0 {
		if err := yaml.Load(src, s, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Open", path, "%s", strings.Join(places(path, err), "\n"))
		}
	}
	if s.Version != "1" {
		return nil, types.Errorf(types.ErrInvalid, "Open", path, `%s: version is %q: write version: "1"`, path, s.Version)
	}
	if len(s.Conversations) > 0 && s.Responses != nil {
		return nil, types.Errorf(types.ErrInvalid, "Open", path, "%s: responses and conversations: write one of them", path)
	}
	s.alone.Responses = s.Responses
	var wrong []string
	if n, err := s.alone.check(); err != nil {
		wrong = append(wrong, fmt.Sprintf("%s: %v", at(path, src, "responses", n), err))
	}
	for i := range s.Conversations {
		s.Conversations[i].filled = true
		if n, err := s.Conversations[i].check(); err != nil {
			way := []any{"conversations", i + 1}
			if n > 0 {
				way = append(way, "responses", n)
			}
			wrong = append(wrong, fmt.Sprintf("%s: conversation %d: %v", at(path, src, way...), i+1, err))
		}
	}
	if len(wrong) > 0 {
		return nil, types.Errorf(types.ErrInvalid, "Open", path, "%s", strings.Join(wrong, "\n"))
	}
	return s, nil
}

// at returns "file:line:column" of what is at the end of a way through a script: keys of maps and, from 1, numbers of entries of lists. It
// ends where the script has no more of it.
func at(path string, src []byte, way ...any) string {
	var doc yaml.Node
	if yaml.Load(src, &doc) != nil || len(doc.Content) == 0 {
		return path
	}
	here := doc.Content[0]
	for _, part := range way {
		var next *yaml.Node
		switch part := part.(type) {
		case string:
			for i := 0; i+1 < len(here.Content) && here.Kind == yaml.MappingNode; i += 2 {
				if here.Content[i].Value == part {
					next = here.Content[i+1]
				}
			}
		case int:
			if here.Kind == yaml.SequenceNode && part > 0 && part <= len(here.Content) {
				next = here.Content[part-1]
			}
		}
		if next == nil {
			break
		}
		if here = next; here.Kind == yaml.AliasNode {
			here = here.Alias
		}
	}
	return fmt.Sprintf("%s:%d:%d", path, here.Line, here.Column)
}

// places returns the mistakes that the parser found as "file:line:column: what".
func places(path string, err error) []string {
	var one *yaml.LoadError
	var many *yaml.LoadErrors
	all := []*yaml.LoadError{}
	switch {
	case errors.As(err, &many):
		all = many.Errors
	case errors.As(err, &one):
		all = append(all, one)
	default:
		return []string{fmt.Sprintf("%s:1:1: %v", path, err)}
	}
	out := make([]string, len(all))
	for i, e := range all {
		line, column, text := e.Mark.Line, e.Mark.Column, e.Message
		var own *scriptError
		if errors.As(e, &own) {
			line, column, text = own.line, own.column, own.text
		}
		if plain := scriptText(text); plain != "" {
			text = plain
		}
		out[i] = fmt.Sprintf("%s:%d:%d: %s", path, max(line, 1), max(column, 1), text)
	}
	return out
}

// check finds what the types cannot say, and turns the inputs into text.
func (r *replayResponse) check() error {
	if !slices.Contains(replayStops, r.StopReason) {
		return fmt.Errorf("invalid stop_reason %q: want one of %s", r.StopReason, strings.Join(replayStops[1:], ", "))
	}
	if u := r.Usage; u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached > u.Input {
		return errors.New("usage must not be negative, and cached_input_tokens is a part of input_tokens")
	}
	if e := r.Error; e != nil {
		if len(r.ToolCalls) > 0 {
			return errors.New("an error cannot have tool_calls")
		}
		if e.Code = strings.ToUpper(e.Code); e.Code == "UNAVAILABLE" {
			e.Code = string(types.ErrUnavailable)
		}
		if !slices.Contains(replayCodes, e.Code) {
			return fmt.Errorf("invalid error code %q: want one of %s", e.Code, strings.Join(replayCodes, ", "))
		}
		if e.Message == "" {
			e.Message = types.ErrCode(e.Code).Error()
		}
	}
	for i := range r.ToolCalls {
		if err := r.ToolCalls[i].check(); err != nil {
			return fmt.Errorf("tool call %d: %w", i+1, err)
		}
	}
	return nil
}

func (c *replayCall) check() error {
	if c.Name == "" {
		return errors.New("no name")
	}
	if c.Input.Kind == 0 {
		return nil
	}
	if c.Input.Kind == yaml.ScalarNode && c.Input.ShortTag() == "!!str" {
		c.input = c.Input.Value
		return nil
	}
	var v any
	err := c.Input.Decode(&v)
	if err == nil {
		var b []byte
		if b, err = encode(v); err == nil {
			c.input, c.value = string(b), v
			return nil
		}
	}
	return fmt.Errorf("line %d: input cannot be written as JSON: %w", c.Input.Line, err)
}
