package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"rnix/drivers/llm/llmtest"
)

// advised runs the command that the last one has printed as advice, as a person does who pastes it into a shell:
// the one that the pattern matches, or its group. It fails if the command was not printed once, or does not end with
// the code, 0 if none is given. What stands for something that a person puts in is given as NAME=VALUE:
// advised 'rnix restore \S+ --to DIR' DIR=../there
// advised 2 'with: (rnix unarchive UUID)' UUID=3
func advised(ts *testscript.TestScript, neg bool, args []string) {
	want := 0
	if len(args) > 1 {
		if n, err := strconv.Atoi(args[0]); err == nil {
			want, args = n, args[1:]
		}
	}
	if neg || len(args) == 0 {
		ts.Fatalf("usage: advised [code] pattern [NAME=value...]")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	var commands []string
	for _, m := range pattern.FindAllStringSubmatch(ts.ReadFile("stdout")+"\n"+ts.ReadFile("stderr"), -1) {
		commands = append(commands, m[len(m)-1])
	}
	if len(commands) != 1 {
		ts.Fatalf("%d commands were printed that match %s: %q", len(commands), args[0], commands)
	}
	command := commands[0]
	for _, a := range args[1:] {
		name, value, _ := strings.Cut(a, "=")
		word := regexp.MustCompile(`(^|[^0-9A-Za-z])` + regexp.QuoteMeta(name) + `([^0-9A-Za-z]|$)`) // a directory's random name may hold its letters
		if !word.MatchString(command) {
			ts.Fatalf("there is no %s in %s", name, command)
		}
		command = word.ReplaceAllString(command, "${1}"+strings.ReplaceAll(value, "$", "$$")+"${2}")
	}
	ts.Logf("$ %s", command)
	got := 0
	if err := ts.Exec("sh", "-c", command); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// vendor serves the APIs of model vendors, which know each model but "gone", and sets the variables that lead there.
func vendor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: vendor")
	}
	api := &llmtest.API{Script: func(r llmtest.Request) llmtest.Reply {
		if r.Model == "gone" {
			return llmtest.Reply{Status: http.StatusNotFound, Text: "model: " + r.Model}
		}
		return llmtest.Reply{Text: "Answered."}
	}}
	url, stop, err := api.Start()
	ts.Check(err)
	ts.Defer(stop)
	ts.Setenv("ANTHROPIC_BASE_URL", url)
	ts.Setenv("ANTHROPIC_API_KEY", "k")
}

// web serves on the loopback, says for each request what it was, and sets WEB to where (localhost:PORT) and PORT. /late does not answer the first request for it, which /came waits for,
// /go leads to where its query says, and /search finds one page for each query.
func web(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: web")
	}
	var late atomic.Bool
	came := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/go":
			http.Redirect(w, r, r.URL.RawQuery, http.StatusFound)
		case r.URL.Path == "/late" && late.CompareAndSwap(false, true):
			close(came)
			<-r.Context().Done()
		case r.URL.Path == "/came":
			select {
			case <-came:
			case <-r.Context().Done():
			}
		}
		if r.URL.Path == "/search" {
			fmt.Fprintf(w, `{"results":[{"title":"Found %s","url":"http://found.test/","content":"for %s"}]}`, r.FormValue("q"), r.Header.Get("Authorization"))
			return
		}
		fmt.Fprintf(w, "web says %s\n", r.URL.Path)
	}))
	ts.Defer(srv.Close)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	ts.Check(err)
	ts.Setenv("WEB", "localhost:"+port)
	ts.Setenv("PORT", port)
}
