package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
)

// plays is what a model does for each intent "play NAME", of plays.txt: a line for each of its answers, which is calls with " + " between
// them, "say TEXT", "asleep", or "hang", "fail" and a sleep of 1000 seconds, where it was when the data was written, and is no more.
type plays map[string][]string

func readPlays(t *testing.T, path string) plays {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	p, name := plays{}, ""
	for line := range strings.Lines(string(b)) {
		answer, isAnswer := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !isAnswer {
			name = answer
			continue
		}
		n := 1
		if times, rest, ok := strings.Cut(answer, " times "); ok {
			if n, err = strconv.Atoi(times); err != nil {
				t.Fatal(err)
			}
			answer = rest
		}
		for range n {
			p[name] = append(p[name], answer)
		}
	}
	return p
}

// answer is the model: it does what comes after the calls that have a result.
func (p plays) answer(r llmtest.Request) llmtest.Reply {
	name, done := "", 0
	for _, m := range r.Messages {
		if said, ok := lastPlay(m.Text); ok && m.Role == "user" {
			name, done = said, 0
		}
		done += len(m.Results)
	}
	for i, line := range p[name] {
		switch say, isSay := strings.CutPrefix(line, "say "); {
		case isSay:
			return llmtest.Reply{Text: say}
		case line == "asleep":
			return llmtest.Reply{Hang: true}
		case line == "hang", line == "fail":
			continue
		}
		calls := strings.Split(line, " + ")
		if done >= len(calls) {
			done -= len(calls)
			continue
		}
		var out llmtest.Reply
		for j, c := range calls {
			tool, input, _ := strings.Cut(strings.ReplaceAll(c, "sleep 1000", "true"), " ")
			out.ToolCalls = append(out.ToolCalls, llmtest.ToolCall{ID: fmt.Sprintf("%s_%d_%d_%d", name, i, j, r.N), Name: tool, Input: input})
		}
		return out
	}
	return llmtest.Reply{Text: "nothing to play for " + name}
}

// lastPlay returns the NAME of the last "play NAME" of a text that is no quotation.
func lastPlay(text string) (name string, ok bool) {
	text = strings.ReplaceAll(text, `"play `, "")
	i := strings.LastIndex(text, "play ")
	if i < 0 {
		return "", false
	}
	name = text[i+len("play "):] // what follows may stand right behind it
	return name[:len(name)-len(strings.TrimLeft(name, "abcdefghijklmnopqrstuvwxyz-"))], true
}
