package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"rnix/drivers/fs"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
)

// herd is the model of many agents. What an agent does in a turn depends on its name and on nothing else, so
// an answer that is asked for again is the same. Each call with an effect carries a mark of its own, which
// is found in what the effect leaves behind.
type herd struct {
	steps int

	mu sync.Mutex
	// +checklocks:mu
	told map[string]string // by mark, what the model was told last
	// +checklocks:mu
	said map[string]bool // marks of calls that the model has asked for
}

func newHerd(steps int) *herd {
	return &herd{steps: steps, told: map[string]string{}, said: map[string]bool{}}
}

// A mark is who.turn.n; kinds tells what its call does.
var mark = regexp.MustCompile(`\b(a\d+|kid-a\d+-\d+-\d+)\.\d+\.[sewk]\d\b`)

// maxKidTurns is how many steps a kid does before it is done.
const maxKidTurns = 2

func (h *herd) reply(r llmtest.Request) llmtest.Reply {
	who := strings.Fields(r.Messages[0].Text)[0]
	turn, marks := 1, map[string]string{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			turn++
		}
		for _, c := range m.Calls {
			marks[c.ID] = mark.FindString(c.Input)
		}
		for _, res := range m.Results {
			if id := marks[res.ID]; id != "" {
				h.told[id] = res.Text
				if res.IsError {
					h.told[id] = "error: " + res.Text
				}
			}
		}
	}
	reply := h.answer(who, turn)
	reply.Usage = &llmtest.Usage{Input: 100, Output: 10}
	for i, c := range reply.ToolCalls {
		if id := mark.FindString(c.Input); id != "" {
			h.said[id] = true
		}
		reply.ToolCalls[i].ID = fmt.Sprintf("call_%d", ids.Add(1))
	}
	return reply
}

func (h *herd) answer(who string, turn int) llmtest.Reply {
	var calls []llmtest.ToolCall
	n := 0
	add := func(kind, name, input string) {
		n++
		calls = append(calls, llmtest.ToolCall{Name: name, Input: strings.ReplaceAll(input, "MARK", fmt.Sprintf("%s.%d.%s%d", who, turn, kind, n))})
	}
	shell := func() { add("s", "shell", `{"command":"echo MARK >> effects"}`) }
	write := func() { add("w", "write_file", `{"path":"w-MARK","content":"MARK"}`) }
	edit := func() {
		add("r", "read_file", `{"path":"log"}`)
		add("e", "edit_file", `{"path":"log","old":"END","new":"MARK END"}`)
	}
	look := func() {
		add("r", "list_files", `{}`)
		add("r", "read_file", `{"path":"log"}`)
		add("r", "grep", `{"pattern":"END"}`)
	}
	kid := func() {
		n++
		calls = append(calls, llmtest.ToolCall{Name: "spawn", Input: fmt.Sprintf(`{"intent":"kid-%s-%d-%d %s.%d.k%d"}`, who, turn, n, who, turn, n)})
	}
	if strings.HasPrefix(who, "kid-") {
		if turn > maxKidTurns {
			return llmtest.Reply{Text: "kid done"}
		}
		shell()
		write()
		return llmtest.Reply{ToolCalls: calls}
	}
	if turn > h.steps {
		return llmtest.Reply{Text: "done"}
	}
	salt := 0
	for _, c := range who {
		salt = salt*31 + int(c)
	}
	switch (salt + turn) % 8 {
	case 0:
		shell()
	case 1:
		shell()
		look()
		shell()
	case 2:
		write()
		edit()
	case 3:
		edit()
		shell()
		edit()
	case 4:
		look()
		shell()
	case 5:
		add("p", "plan", fmt.Sprintf(`{"steps":["turn %d","go on"]}`, turn))
	case 6:
		kid()
		if turn%2 == 0 {
			kid()
		}
	case 7:
		shell()
		write()
		edit()
		shell()
	}
	return llmtest.Reply{ToolCalls: calls}
}

// fates counts what became of the calls of a herd.
type fates struct{ effects, repeated, lost, doubt, refused int }

// judge compares what each call has left behind with what its model was told: told that it has run, it has
// run once; told that it has not, it has not; told that nobody knows, at most once.
func (h *herd) judge(s *testenv.System, kids map[string]int) (f fates, wrong []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]int{}
	for id, n := range kids {
		count[id] = n
	}
	_ = filepath.WalkDir(s.Work, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), fs.TempPrefix) { // of a write that was cut off
			return err
		}
		b, err := os.ReadFile(path)
		for _, id := range mark.FindAllString(string(b), -1) {
			count[id]++
		}
		return err
	})
	for id := range h.said {
		text, told := h.told[id]
		n := count[id]
		f.effects += n
		want := "1"
		switch {
		case !told:
			want = "an answer"
		case strings.Contains(text, "outcome is unknown"):
			f.doubt++
			want = "0 or 1"
		case strings.HasPrefix(text, "error: "):
			f.refused++
			want = "0"
		}
		if n > 1 {
			f.repeated++
		}
		if n == 0 && want == "1" {
			f.lost++
		}
		if told && (want == fmt.Sprint(n) || want == "0 or 1" && n < 2) {
			continue
		}
		wrong = append(wrong, fmt.Sprintf("%s has happened %d times, want %s: the model was told %q", id, n, want, text))
	}
	for id, n := range count {
		if !h.said[id] {
			wrong = append(wrong, fmt.Sprintf("%s has happened %d times and nobody has asked for it", id, n))
		}
	}
	return f, wrong
}
