package main

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// page is what docs/benchmarks.md is made of.
type page struct {
	Machine machine
	Rounds  int
	Each    time.Duration
	Started time.Time
	Took    time.Duration
	Load    string // when it was over
	Results []result
	Peers   []contested // empty: they were not measured
	Parts   []added     // likewise
}

//go:embed page.tmpl
var layout string

var layoutOf = template.Must(template.New("page").Funcs(template.FuncMap{
	"row":     func(r result) string { return r.line() },
	"contest": func(c contested) string { return c.line() },
	"part":    func(a added) string { return a.line() },
}).Parse(layout))

func (p page) write(w io.Writer) error { return layoutOf.Execute(w, p) }

// save writes the page to a file, in a directory that may be missing.
func (p page) save(path string) error {
	var text strings.Builder
	if err := p.write(&text); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text.String()), 0o644)
}

// line is a row of the page's table.
func (r result) line() string {
	base, ratio := "", ""
	if r.base != "" {
		base = r.what + ": " + amount(r.Base.mid, r.unit)
	}
	if r.Ratio.mid > 0 {
		ratio = times(r.Ratio)
	}
	target := ""
	switch {
	case r.target == 0 && r.gate == 0:
	case r.absolute && r.target == 0:
		target = "none"
	case r.absolute:
		target = "≤ " + amount(r.target, r.unit)
	default:
		target = "≤ " + number(r.target) + "x"
		if r.gate > 0 {
			target += " (" + number(r.gate) + "x)"
		}
	}
	return strings.Join([]string{"", " " + r.no + " ", " " + r.measure + " ", " " + amount(r.Ours.mid, r.unit) + " ", " " + base + " ",
		" " + ratio + " ", " " + target + " ", " " + r.Verdict + " ", ""}, "|")
}

// times shows a ratio and its range.
func times(s spread) string {
	return fmt.Sprintf("%sx (%s to %s)", number(s.mid), number(s.low), number(s.high))
}

// amount shows a figure in its unit, as people read it.
func amount(v float64, unit string) string {
	what, per, _ := strings.Cut(unit, "/")
	switch {
	case strings.HasSuffix(what, "ns"):
		d := time.Duration(math.Round(v))
		switch {
		case v < 1000:
			return number(v) + " ns"
		case d < time.Millisecond:
			return number(v/1e3) + " us"
		case d < time.Second:
			return number(v/1e6) + " ms"
		}
		return number(v/1e9) + " s"
	case strings.HasSuffix(what, "B") && v >= 10_000:
		return number(v/1024) + " KiB"
	case strings.HasSuffix(what, "B"):
		return number(v) + " B"
	case per == "op":
		return number(v)
	}
	return number(v) + " " + what
}

// number shows three digits.
func number(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// machine says where and what was measured.
type machine struct {
	CPU, Cores, OS, Go, Commit string
	Load                       string // average over the last minute
}

// describe fills in what can be found out; the rest is "unknown".
func describe() machine {
	m := machine{CPU: runtime.GOARCH, Cores: strconv.Itoa(runtime.NumCPU()), OS: runtime.GOOS, Go: strings.TrimPrefix(runtime.Version(), "go")}
	for line := range strings.Lines(firstOf("/proc/cpuinfo")) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			m.CPU = strings.TrimSpace(v)
			break
		}
	}
	if v := strings.TrimSpace(firstOf("/proc/sys/kernel/osrelease")); v != "" {
		m.OS += " " + v
	}
	m.Load, m.Commit = load(), commit()
	return m
}

func load() string {
	if f := strings.Fields(firstOf("/proc/loadavg")); len(f) > 0 {
		return f[0]
	}
	return "unknown"
}

// firstOf returns a file's text, or nothing.
func firstOf(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "" // another system
	}
	return string(b)
}
