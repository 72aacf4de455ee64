package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"rnix/internal/soak"
)

// report counts results and keeps the output of tests until it is known whether anybody wants it.
type report struct {
	out     io.Writer
	running map[key]*test // begun and not ended; Test "" is the package itself
	builds  map[string][]string
	races   map[string][]string // reports of the race detector, by package, as far as they have come
	packages,
	passed, failed int
	skipped  []skip
	later    []skip  // tests that wait for their turn, as package soak says it
	slow     []timed // the slowest, slowest first
	amounts  []skip  // how much statistical tests have tried, as package soak says it
	failures []failure
	flaky    []key  // failed, and passed when they were run again
	exit     string // how the go command ended; "" = not told
}

type key struct{ pkg, test string }

// test is a test under way.
type test struct {
	output   []string
	children bool // it has subtests: they are counted instead of it
	failed   bool // one of them has failed, or it itself
}

// failure is a test that failed.
type failure struct {
	key
	grave bool // a data race or a panic
}

// skip is a test that was not run.
type skip struct{ pkg, test, reason string }

// timed is a test and its seconds.
type timed struct {
	key
	took float64
}

// mostSlow is how many of the slowest tests are shown.
const mostSlow = 10

func newReport(out io.Writer) *report {
	return &report{out: out, running: map[key]*test{}, builds: map[string][]string{}, races: map[string][]string{}}
}

// take takes one event.
func (r *report) take(e entry) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		r.builds[e.ImportPath] = append(r.builds[e.ImportPath], e.Output)
	case "start", "run":
		r.running[k] = &test{}
		if p := r.parent(k); p != nil {
			p.children = true
		}
	case "output":
		if t := r.running[k]; t != nil {
			t.output = append(t.output, e.Output)
		}
		r.amount(k, e.Output)
		r.race(e.Package, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(k, e.Action)
			r.timed(k, e.Elapsed)
		}
		delete(r.running, k)
	}
}

// timed keeps how long a test took, if that is one of the longest so far. The go command counts neither the time that a
// parallel test waits to begin, nor, for their parent, parallel subtests: so these are on the list, and others only
// with their parent.
func (r *report) timed(k key, took float64) {
	r.slow = slices.DeleteFunc(r.slow, func(t timed) bool {
		return t.pkg == k.pkg && t.took <= took && strings.HasPrefix(t.test, k.test+"/")
	})
	i, _ := slices.BinarySearchFunc(r.slow, took, func(t timed, took float64) int { return cmp.Compare(took, t.took) })
	if r.slow = slices.Insert(r.slow, i, timed{k, took}); len(r.slow) > mostSlow {
		r.slow = r.slow[:mostSlow]
	}
}

var saysAmount = regexp.MustCompile(`^\s*\S+\.go:\d+: ((?:short|soak): .*)\n$`)

// amount keeps what a test says of how much it tries.
func (r *report) amount(k key, line string) {
	if m := saysAmount.FindStringSubmatch(line); m != nil {
		r.amounts = append(r.amounts, skip{k.pkg, k.test, m[1]})
	}
}

// race prints what the race detector reports, which lies in the output of whatever test of the package was told of last: one that passes, maybe.
func (r *report) race(pkg, line string) {
	lines, within := r.races[pkg]
	if !within && !strings.Contains(line, "WARNING: DATA RACE") {
		return
	}
	if r.races[pkg] = append(lines, line); !strings.HasPrefix(line, "=====") {
		return
	}
	fmt.Fprintf(r.out, "data race in %s:\n%s", pkg, strings.Join(r.races[pkg], ""))
	delete(r.races, pkg)
}

// parent returns the test that k is a subtest of; nil if there is none.
func (r *report) parent(k key) *test {
	i := strings.LastIndexByte(k.test, '/')
	if i < 0 {
		return nil
	}
	return r.running[key{k.pkg, k.test[:i]}]
}

func (r *report) endTest(k key, action string) {
	t := r.running[k]
	if t == nil {
		t = &test{}
	}
	switch {
	case action == "skip":
		if s := (skip{k.pkg, k.test, reason(t.output)}); strings.HasPrefix(s.reason, soak.Later) {
			r.later = append(r.later, s)
		} else {
			r.skipped = append(r.skipped, s)
		}
	case action == "pass":
		if !t.children {
			r.passed++
		}
	default:
		r.show(t)
		if !t.failed { // else its subtest was counted
			r.failed++
			r.failures = append(r.failures, failure{k, grave(t.output)})
		}
		for k := k; ; { // every test above it fails because of it
			i := strings.LastIndexByte(k.test, '/')
			if i < 0 {
				break
			}
			k.test = k.test[:i]
			if p := r.running[k]; p != nil {
				p.failed = true
			}
		}
		if p := r.running[key{k.pkg, ""}]; p != nil {
			p.failed = true
		}
	}
}

func (r *report) endPackage(e entry) {
	r.packages++
	p := r.running[key{e.Package, ""}]
	if p == nil {
		p = &test{}
	}
	took := fmt.Sprintf("%.1fs", e.Elapsed)
	switch e.Action {
	case "pass":
		fmt.Fprintf(r.out, "ok    %s  %s\n", e.Package, took)
	case "skip":
		fmt.Fprintf(r.out, "-     %s  no tests\n", e.Package)
	default:
		for _, l := range r.builds[e.FailedBuild] {
			io.WriteString(r.out, l)
		}
		r.cutShort(e.Package, p)
		if !p.failed {
			r.failed++ // it did not build, or failed outside of any test
		}
		if e.FailedBuild != "" || !p.failed {
			r.show(p)
		}
		fmt.Fprintf(r.out, "FAIL  %s  %s\n", e.Package, took)
	}
}

// cutShort counts the tests of a package that had not ended when it failed: a panic, or a timeout.
func (r *report) cutShort(pkg string, p *test) {
	var left []key
	for k, t := range r.running {
		if k.pkg == pkg && k.test != "" && !t.children {
			left = append(left, k)
		}
	}
	slices.SortFunc(left, func(a, b key) int { return cmp.Compare(a.test, b.test) })
	for _, k := range left {
		r.failed++
		p.failed = true
		r.show(r.running[k])
		fmt.Fprintf(r.out, "did not end: %s %s\n", pkg, k.test)
	}
	for k := range r.running {
		if k.pkg == pkg && k.test != "" {
			delete(r.running, k)
		}
	}
}

// show prints what a failed test printed, without the lines that only say that it ran.
func (r *report) show(t *test) {
	for _, l := range t.output {
		if !strings.HasPrefix(l, "=== ") {
			io.WriteString(r.out, l)
		}
	}
}

// grave says whether a test printed of something that no second run may hide.
func grave(output []string) bool {
	return slices.ContainsFunc(output, func(l string) bool {
		return strings.Contains(l, "DATA RACE") || strings.Contains(l, "race detected") || strings.HasPrefix(l, "panic:") || strings.HasPrefix(l, "fatal error:")
	})
}

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// scriptSkip is the line of a script of testscript that skips it: its log holds what the script does, not why.
var scriptSkip = regexp.MustCompile(`^\s*> (?:\[[^]]*\] *)*skip '?(.*?)'?\s*$`)

// reason returns the last thing that a skipped test said.
func reason(output []string) string {
	for _, l := range slices.Backward(output) {
		if m := scriptSkip.FindStringSubmatch(l); m != nil {
			return cmp.Or(m[1], "it gives no reason")
		}
		if m := place.FindString(l); m != "" {
			return strings.TrimSpace(l[len(m):])
		}
	}
	return "it gives no reason"
}

// finish prints the end of the report and returns the exit status.
func (r *report) finish() int {
	for k := range r.running {
		if k.test == "" {
			r.check(k.pkg + ": the run ended before it did")
		}
	}
	if r.packages == 0 && r.failed == 0 {
		r.check("no package was tested")
	}
	if r.exit != "0" && r.failed == 0 {
		r.check("go test: exit status " + cmp.Or(r.exit, "unknown"))
	}
	fmt.Fprintln(r.out)
	for _, t := range r.slow {
		if t.took >= 1 {
			fmt.Fprintf(r.out, "slow: %6.1fs %s %s\n", t.took, t.pkg, t.test)
		}
	}
	short := 0
	for _, a := range r.amounts {
		if strings.HasPrefix(a.reason, "short") {
			short++
			continue
		}
		fmt.Fprintf(r.out, "%s (%s %s)\n", a.reason, a.pkg, a.test)
	}
	if short > 0 {
		fmt.Fprintf(r.out, "short: %d amounts of statistical tests; make soak tries more\n", short)
	}
	r.sayLater()
	for _, s := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s %s: %s\n", s.pkg, s.test, s.reason)
	}
	for _, k := range r.flaky {
		fmt.Fprintf(r.out, "flaky: %s %s: failed, and passed when it was run again alone\n", k.pkg, k.test)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped", r.passed, r.failed, len(r.skipped))
	if len(r.later) > 0 {
		fmt.Fprintf(r.out, ", %d later", len(r.later))
	}
	if len(r.flaky) > 0 {
		fmt.Fprintf(r.out, ", %d flaky", len(r.flaky))
	}
	fmt.Fprintln(r.out)
	if r.failed > 0 {
		return 1
	}
	return 0
}

// sayLater names the tests that wait for their turn, a line for each package.
func (r *report) sayLater() {
	names := map[string][]string{}
	for _, s := range r.later {
		names[s.pkg] = append(names[s.pkg], s.test)
	}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		slices.Sort(names[pkg])
		fmt.Fprintf(r.out, "later: %s: %d tests that run in other gates (all run with ./test --all): %s\n", pkg, len(names[pkg]), strings.Join(names[pkg], ", "))
	}
}
