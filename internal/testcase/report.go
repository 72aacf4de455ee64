package testcase

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/debug"
	"rnix/types"
)

// How a case ended. Part of the wire format of the JSON report.
const (
	Passed      = "passed"
	Failed      = "failed"
	Unconfirmed = "unconfirmed" // a proposal that no person has confirmed; the case counts as failed
	Broken      = "error"       // it could not be run
	TimedOut    = "timeout"
	Interrupted = "interrupted" // by a signal to whoever ran it, before it ended or began
)

// Outcome is how a case ended.
type Outcome struct {
	Name     string        `json:"name"`
	Dir      string        `json:"dir"`
	Status   string        `json:"status"`
	Took     time.Duration `json:"took_ns"`
	Calls    int           `json:"calls"`
	Problems []Problem     `json:"problems"`
	Updated  bool          `json:"updated,omitempty"` // its expectations were written anew
	Notes    []string      `json:"notes,omitempty"`
}

// OK reports whether the case has passed.
func (o *Outcome) OK() bool { return o.Status == Passed }

// Report is what became of some cases, in the order in which they were named. Its list is never null.
type Report struct {
	Total       int           `json:"total"`
	Failed      int           `json:"failed"` // those that were interrupted are not among them
	Interrupted int           `json:"interrupted,omitempty"`
	Took        time.Duration `json:"took_ns"`
	// Online is why the cases had the network of this machine; empty = they had none.
	Online string    `json:"online,omitempty"`
	Cases  []Outcome `json:"cases"`
}

// NewReport makes a report of outcomes.
func NewReport(cases []Outcome, took time.Duration) *Report {
	r := &Report{Total: len(cases), Took: took, Cases: cases}
	for i := range cases {
		if cases[i].Problems == nil {
			cases[i].Problems = []Problem{}
		}
		switch {
		case cases[i].Status == Interrupted:
			r.Interrupted++
		case !cases[i].OK():
			r.Failed++
		}
	}
	if r.Cases == nil {
		r.Cases = []Outcome{}
	}
	return r
}

// Text is the report for people. What agents have said in it is not cleaned.
func (r *Report) Text() string {
	var b strings.Builder
	for i := range r.Cases {
		o := &r.Cases[i]
		word := map[string]string{Passed: "ok  ", Failed: "FAIL", Unconfirmed: "TODO", Broken: "ERR ", TimedOut: "TIME", Interrupted: "STOP"}[o.Status]
		fmt.Fprintf(&b, "%s  %s  %s", word, o.Name, debug.Duration(o.Took))
		if o.Updated {
			b.WriteString("  (its expectations were written anew: read and confirm them)")
		}
		b.WriteByte('\n')
		for _, p := range o.Problems {
			b.WriteString("      " + at(p.At) + strings.ReplaceAll(p.What, "\n", "\n      ") + "\n")
			if p.Diff != "" {
				b.WriteString("        " + strings.ReplaceAll(strings.TrimRight(p.Diff, "\n"), "\n", "\n        ") + "\n")
			}
		}
		for _, n := range o.Notes {
			b.WriteString("      note: " + n + "\n")
		}
	}
	if r.Online != "" {
		b.WriteString("note: " + r.network() + "; --offline require refuses that\n")
	}
	stopped := ""
	if r.Interrupted > 0 {
		stopped = fmt.Sprintf(", %d interrupted", r.Interrupted)
	}
	fmt.Fprintf(&b, "%d of %s passed%s in %s\n", r.Total-r.Failed-r.Interrupted, types.Counted(r.Total, "case", "cases"), stopped, debug.Duration(r.Took))
	return b.String()
}

// network says whether the cases could reach anything.
func (r *Report) network() string {
	if r.Online == "" {
		return "the cases had no network"
	}
	return "the cases had the network of this machine, since it cannot be cut off here (" + r.Online + ")"
}

func at(place string) string {
	if place == "" {
		return ""
	}
	return place + ": "
}

// JSON is the report for programs, one object.
func (r *Report) JSON() ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return []byte(b.String()), err
}

// The elements of a JUnit report, as CI systems read them.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Facts    []junitFact `xml:"properties>property"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		File    string       `xml:"file,attr"`
		Time    string       `xml:"time,attr"`
		Failure *junitDetail `xml:"failure,omitempty"`
		Error   *junitDetail `xml:"error,omitempty"`
		Out     string       `xml:"system-out,omitempty"`
	}
	junitFact struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitDetail struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit is the report as XML that CI systems read.
func (r *Report) JUnit() ([]byte, error) {
	s := junitSuite{Name: "rnix", Tests: r.Total, Time: seconds(r.Took), Facts: []junitFact{{"network", legal(r.network())}}}
	for i := range r.Cases {
		o := &r.Cases[i]
		c := junitCase{Name: legal(o.Name), Class: "rnix", File: legal(o.Dir + "/" + File), Time: seconds(o.Took), Out: legal(strings.Join(o.Notes, "\n"))}
		var text strings.Builder
		first := ""
		for _, p := range o.Problems {
			if first == "" {
				first = at(p.At) + p.What
			}
			fmt.Fprintf(&text, "%s%s\n%s", at(p.At), p.What, p.Diff)
		}
		detail := &junitDetail{Message: legal(brief(oneLine(first), 500)), Type: o.Status, Text: legal(text.String())}
		switch o.Status {
		case Passed:
		case Broken, TimedOut, Interrupted:
			c.Error = detail
			s.Errors++
		default:
			c.Failure = detail
			s.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	all := junitSuites{Name: "rnix", Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: s.Time, Suite: s}
	b, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(b, '\n')...), err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// legal returns a text without what XML cannot hold.
func legal(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return r
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff || r == utf8.RuneError:
			return '\uFFFD'
		}
		return r
	}, s)
}
