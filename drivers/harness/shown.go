package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/harness"
)

// words are something that a command line is told.
type words struct {
	text  string
	shown []rnixctx.Attachment // with it
}

// together is what was said as one message of the user.
func together(all []words) rnixctx.Message {
	m := rnixctx.Message{Role: rnixctx.RoleUser}
	var texts []string
	for _, w := range all {
		texts, m.Attachments = append(texts, w.text), append(m.Attachments, w.shown...)
	}
	m.Content = strings.Join(texts, "\n\n")
	return m
}

// whyTool is why a command line is not shown what a tool of the kernel has found.
const whyTool = "an agent CLI is shown no images and PDFs of the kernel's tools"

// describe returns messages with a line in the place of each attachment that a command line is not shown. It is shown those of the user, as far as it
// takes such.
func describe(cli harness.CLI, ms []rnixctx.Message) []rnixctx.Message {
	can := cli.Can()
	return llm.Showing(ms, func(m *rnixctx.Message, a *rnixctx.Attachment) string {
		if m.Role != rnixctx.RoleUser {
			return whyTool
		}
		return can.Refuses(cli.Name(), &agent.Attachment{Media: a.Media})
	})
}

// load returns messages of the user, with a line in the place of each attachment that cannot be read, and what the others hold, each once.
func load(req *llm.LLMRequest, ms []rnixctx.Message) ([]rnixctx.Message, []agent.Attachment) {
	var out []agent.Attachment
	seen := map[string]bool{}
	return llm.Showing(ms, func(_ *rnixctx.Message, a *rnixctx.Attachment) string {
		if seen[a.SHA256] {
			return ""
		}
		data, why := llm.LoadAttachment(req, a)
		if why == "" {
			seen[a.SHA256] = true
			out = append(out, agent.Attachment{Name: a.Name, Media: a.Media, Data: data})
		}
		return why
	}), out
}

// opening is what a command line is started with: the whole conversation, or what has come since it was here. It is shown again what it may not have
// been shown, but not what its own record has.
func opening(ctx context.Context, s *session, req *llm.LLMRequest, at *origin) (text string, shown []agent.Attachment) {
	if at.Session == "" {
		var all []rnixctx.Message
		all, shown = load(req, llm.Recent(req.Messages))
		all = slices.Clone(all)
		for i := range all {
			all[i].Attachments = nil // they stand beside the text, which has their names
		}
		return llm.Transcript(all), shown
	}
	missed := len(at.missed)
	since := llm.Recent(append(slices.Clone(at.missed), req.Messages[at.since:]...))
	since, shown = load(req, since)
	if len(shown) > 0 {
		shown = slices.DeleteFunc(shown, recorded(ctx, s, at.Session, shown))
	}
	return goOn(since[:missed], since[missed:], callsBefore(req.Messages, at.since)), shown
}

// maxRecorded bounds a line of a record that is looked at: one message with what was shown with it.
const maxRecorded = 32 << 20

// recorded returns which of what is to be shown the command line's own record of a session has in the conversation. Of one whose record cannot be
// read as a file nothing is known.
func recorded(ctx context.Context, s *session, id string, shown []agent.Attachment) func(agent.Attachment) bool {
	var codes, found []string
	for i := range shown {
		codes = append(codes, base64.StdEncoding.EncodeToString(shown[i].Data))
	}
	where := s.cfg.CLI.Kept(id, func(name string) string { return s.confined.variable(ctx, s.cfg.CLI, name) })
	for _, pattern := range where.Files {
		for f := range records(s.confined.Home, pattern) {
			found = append(found, codesIn(&io.LimitedReader{R: f, N: maxKept}, codes)...)
		}
	}
	return func(a agent.Attachment) bool {
		return slices.Contains(found, base64.StdEncoding.EncodeToString(a.Data))
	}
}

// codesIn returns which texts stand in the lines of a record that are part of the conversation.
func codesIn(record io.Reader, codes []string) (found []string) {
	r := bufio.NewReaderSize(record, 64<<10)
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxRecorded-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		for _, code := range codes {
			if bytes.Contains(line, []byte(code)) && !queued(line) {
				found = append(found, code)
			}
		}
		if line = line[:0]; err != nil {
			return found
		}
	}
}

// queued reports whether a line of claude's record is of something that waits to be heard, and was not heard when it was written.
func queued(line []byte) bool {
	var in struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(line, &in) != nil || in.Type == "queue-operation"
}

// say tells the command line something, now or when it has ended its turn.
func (s *session) say(req *llm.LLMRequest, m *rnixctx.Message) {
	if !s.cfg.CLI.Can().Steer || s.child.Stdin() == nil { // its bytes are read when it is told
		s.later = append(s.later, words{m.Content, m.Attachments})
		return
	}
	told, shown := load(req, []rnixctx.Message{*m})
	line, err := s.cfg.CLI.Steer(told[0].Content, shown...)
	if err != nil {
		s.later = append(s.later, words{m.Content, m.Attachments})
		return
	}
	s.idle = false
	s.unheard = append(s.unheard, words{told[0].Content, told[0].Attachments})
	s.child.say(line)
}
