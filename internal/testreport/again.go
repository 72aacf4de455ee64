package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// again runs failed tests a second time: one that passes then depends on how busy the machine is. It is told of as
// flaky and named, and does not fail the run. Nothing else is forgiven: neither a data race, nor a panic, nor a package
// that fails outside of its tests, nor more failures than most.
type again struct {
	command []string // "go", "test", "-json" and its flags; "-run NAME PACKAGE" is added
	most    int      // as many failures may be run again; 0 = none
}

// againFrom reads what is to be run again from the arguments "-again N go test -json ...".
func againFrom(args []string) (again, error) {
	if len(args) == 0 {
		return again{}, nil
	}
	if len(args) < 3 || args[0] != "-again" {
		return again{}, fmt.Errorf("usage: testreport [-again N go test -json FLAGS...]")
	}
	most, err := strconv.Atoi(args[1])
	if err != nil || most < 0 {
		return again{}, fmt.Errorf("-again %q: want a number from 0 on", args[1])
	}
	return again{command: args[2:], most: most}, nil
}

// forgivable reports whether all failures of r may be run again.
func (r *report) forgivable(most int) bool {
	return len(r.failures) == r.failed && r.failed <= most && !slices.ContainsFunc(r.failures, func(f failure) bool { return f.grave })
}

// retry runs the failed tests of r a second time, if they may be, and takes those that pass off its failures.
func (r *report) retry(a again, run func(command []string, out io.Writer) *report) {
	if r.failed == 0 || !r.forgivable(a.most) {
		return
	}
	for _, f := range r.failures {
		fmt.Fprintf(r.out, "\nagain: %s %s\n", f.pkg, f.test)
		second := run(append(append([]string{}, a.command...), "-count=1", "-run", only(f.test), f.pkg), r.out)
		if second.failed > 0 || second.passed == 0 || second.exit != "0" {
			continue
		}
		r.flaky = append(r.flaky, f.key)
		r.failed--
		r.passed++
	}
	if len(r.flaky) > 0 && r.failed == 0 {
		r.exit = "0"
	}
}

// only returns the pattern of "go test -run" that fits a test or subtest and no other.
func only(test string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^") + "$"
}

// runGo runs a go command and reports on it.
func runGo(command []string, out io.Writer) *report {
	r := newReport(out)
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	printed, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.check(err.Error())
		return r
	}
	if err := r.read(printed); err != nil {
		r.check("reading the results: " + err.Error())
		_, _ = io.Copy(io.Discard, printed)
	}
	_ = c.Wait() // its status is asked for next
	r.exit = strconv.Itoa(c.ProcessState.ExitCode())
	return r
}
