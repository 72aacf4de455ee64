// Command testreport reads what "go test -json" prints and shows what a person needs: a line for each
// package, the output of what failed, and at the end every test that was skipped with its reason.
//
// Its last line is "N passed, N failed, N skipped", behind which come ", N later" for tests that wait for their turn, as package soak
// says it, and ", N flaky", and its exit status is 1 if anything failed. Lines
// that are not JSON are shown as they are; one that begins "failed: " counts as a failure, so that other
// checks can stand in the same stream. "exit status N" is how the go command ended.
//
// With the arguments "-again N go test -json FLAGS..." up to N failed tests are run a second time, alone:
// those that pass then are named as flaky at the end, and counted apart.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	second, err := againFrom(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		r.check("reading the results: " + err.Error())
	}
	r.retry(second, runGo)
	os.Exit(r.finish())
}

// entry is one line of "go test -json".
type entry struct {
	Action      string
	Package     string
	ImportPath  string // of a build
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// maxLine is the longest line of input in bytes.
const maxLine = 16 << 20

// read takes all lines of in.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e entry
		if line := lines.Text(); !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
			r.other(line)
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

// other takes a line that is not JSON.
func (r *report) other(line string) {
	if status, ok := strings.CutPrefix(line, "exit status "); ok {
		r.exit = status
		return
	}
	if what, ok := strings.CutPrefix(line, "failed: "); ok {
		r.check(what)
		return
	}
	fmt.Fprintln(r.out, line)
}

// check counts a failed check that is no test.
func (r *report) check(what string) {
	r.failed++
	fmt.Fprintln(r.out, "FAIL  "+what)
}
