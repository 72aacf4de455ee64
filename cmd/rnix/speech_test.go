package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
)

// A person sees what a model says while it says it, on a line that has no end yet too, and the result once.
func TestAPersonSeesWhatAModelSaysWhileItSaysIt(t *testing.T) {
	s := newScreen(t)
	const result = "The result is\nthese two lines."
	_, url := llmtest.NewMessagesAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Text: result, Chunks: 7}
		}
		if strings.Contains(r.LastUser(), "hang") {
			return llmtest.Reply{Text: "A line.\nAnd half of \x1b[31manother", Hang: true}
		}
		return llmtest.Reply{Text: "I look first.", Reasoning: "Hm.", ToolCalls: []llmtest.ToolCall{{Name: "shell", Input: `{"command":"echo hi"}`}}}
	})
	s.env = append(s.env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.open("80", "24", "rnix run --model anthropic/m hang")
	s.sees("A line.\nAnd half of", " PID 1 · step 1/50 · ") // the status line is below
	if strings.Contains(s.text(), "Hm.") {
		t.Error("thoughts are shown without -v")
	}
	s.keys("C-c")
	s.sees("asking PID 1 to stop", "ended with 130")

	s.run("rnix run --model anthropic/m look")
	s.sees("I look first.\n[agent] step 1", "ended with 0")
	if n := strings.Count(s.text(), result); n != 1 {
		t.Errorf("the result is there %d times:\n%s", n, s.text())
	}
	s.run("rnix run -v --model anthropic/m look > out.txt")
	s.sees("Hm.\nI look first.\n", result, "ended with 0")
	if b, err := os.ReadFile(filepath.Join(s.dir, "out.txt")); err != nil || string(b) != result+"\n" {
		t.Errorf("standard output: %q, %v", b, err)
	}
}

// A log that is followed shows the line that a model has begun, from where it began, before the line has an end; and once when it has one.
func TestALogThatIsFollowedShowsALineThatHasBegun(t *testing.T) {
	s := newScreen(t)
	_, url := llmtest.NewMessagesAPI(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "A line.\nAnd half of \x1b[31manother", Hang: true}
	})
	s.env = append(s.env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.open("80", "24", "rnix run -q -d --name slow --model anthropic/m hang && rnix log -f slow")
	s.sees(" 1 [output] A line.", " 1 [output] And half of another")
	if b := s.rnix("log", "slow"); !strings.Contains(b, "A line.") || strings.Contains(b, "And half") {
		t.Errorf("the log of the past has not only whole lines:\n%s", b)
	}
	s.rnix("kill", "-KILL", "slow")
	s.sees("ended with 0")
	for _, once := range []string{"A line.", "And half of another", "exited(4)"} {
		if n := strings.Count(s.text(), once); n != 1 {
			t.Errorf("%q is there %d times:\n%s", once, n, s.text())
		}
	}
}
