package main

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const want = `inputs: "The parser has no tests." became "# Docs: what is tested, and what is not"
stream: "I read the code first.\nThe parser has no tests.\n"
messages: "the tests are green"
pipes: "through the pipe", then EOF
groups: 2 members ended, who had left is running
signals: 3 paused at once, 1 handled, running while SIGTERM was blocked, then terminated
threads: 1: security is fine
threads: 2: style is fine
coroutines: ONE
coroutines: TWO
`

func TestTheProgramDoesWhatItShows(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
