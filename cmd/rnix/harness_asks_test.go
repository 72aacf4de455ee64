package main

import (
	"strconv"
	"strings"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/runtime/statehome"
)

// waiting returns what waits for a person, over the wire: a program that looks again and again takes the processor from what is waited for. Without a
// daemon, one is started.
func (u *user) waiting() []ipc.Ask {
	u.t.Helper()
	places, err := statehome.Find(func(key string) (v string, set bool) {
		for _, kv := range u.env {
			if k, value, _ := strings.Cut(kv, "="); k == key {
				v, set = value, value != ""
			}
		}
		return v, set
	}, u.Work)
	if err != nil {
		u.t.Fatal(err)
	}
	look := func() ([]ipc.Ask, error) {
		c, err := ipc.Connect(u.t.Context(), places.Socket)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		r, err := ipc.Call(u.t.Context(), c, ipc.ListAsks, ipc.AsksRequest{})
		return r.Asks, err
	}
	all, err := look()
	if err != nil { // it has just been killed
		u.must("asks")
		all, err = look()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return all
}

// asks returns the numbers of what waits for a person, when that is so many.
func (u *user) asks(n int) (numbers []string) {
	u.t.Helper()
	there := testenv.Within(3*time.Minute, func() bool { // an opencode starts slowly on a machine with other work
		numbers = nil
		for _, a := range u.waiting() {
			numbers = append(numbers, strconv.FormatUint(a.Number, 10))
		}
		return len(numbers) == n
	})
	if !there {
		u.t.Fatalf("want %d asks:\n%s\n%s", n, u.must("asks"), u.must("ps", "-a"))
	}
	return numbers
}

// calls has the model make calls one after the other, and say what all of them gave.
func (u *user) calls(all ...llmtest.Reply) {
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		var gave []string
		for _, m := range r.Messages {
			for _, res := range m.Results {
				gave = append(gave, res.Text)
			}
		}
		if len(gave) < len(all) {
			return all[len(gave)]
		}
		return llmtest.Reply{Text: "it came to this: " + strings.Join(gave, "; ")}
	})
}

func bash(command string) llmtest.Reply {
	return use("Bash", map[string]any{"command": command, "description": "tries"})
}
