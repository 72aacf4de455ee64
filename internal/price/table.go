// Package price knows what the answers of models cost: amounts of money, rates, and tables of rates, of which
// one is built in; and how many tokens models take, by another table. It is pure, and asks nobody.
package price

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rnix/internal/yamlfile"
)

// MaxRate bounds a rate, in dollars per million tokens.
const MaxRate = 10_000

//go:embed prices.yaml
var builtIn []byte

// BuiltIn returns the table that comes with the program. Nobody changes it.
var BuiltIn = sync.OnceValue(func() *Table {
	t, ps := Parse(builtIn, "built-in")
	if len(ps) > 0 {
		panic(ps.Error()) // a test reads it
	}
	return t
})

// Table is a list of rates.
type Table struct{ lines []line }

// line is a rate, whose it is, and since when.
type line struct {
	providers, models []string
	from              time.Time
	source            string
	rate              Rate
}

// file and entry are the form of prices.yaml.
type file struct {
	Version string  `yaml:"version"`
	From    date    `yaml:"from"` // of lines that do not say
	Prices  []entry `yaml:"prices"`
}

type entry struct {
	Provider yamlfile.Words `yaml:"provider"`
	Model    yamlfile.Words `yaml:"model"`
	From     date           `yaml:"from"`

	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
	CacheHour  *float64 `yaml:"cache_write_1h"`
	Over       *over    `yaml:"over"`
}

type over struct {
	Tokens     int      `yaml:"tokens"`
	Input      *float64 `yaml:"input"`
	Output     *float64 `yaml:"output"`
	CacheRead  *float64 `yaml:"cache_read"`
	CacheWrite *float64 `yaml:"cache_write"`
	CacheHour  *float64 `yaml:"cache_write_1h"`
}

// Parse reads a table. name is that of the file, for problems and sources. Lines with a mistake are left out.
func Parse(src []byte, name string) (*Table, yamlfile.Problems) {
	var f file
	d := yamlfile.Decode(src, &f, yamlfile.Options{File: name, AllowEmpty: true})
	if f.Version != "" && f.Version != "1" {
		d.Problemf("version", "%q is not known; write version: \"1\"", f.Version)
	}
	t := &Table{}
	for i := range f.Prices {
		e, at := &f.Prices[i], "prices["+strconv.Itoa(i)+"]"
		wrong := len(d.Problems().Errors())
		l := line{providers: e.Provider, models: e.Model, source: d.Origin(at), from: e.From.Time}
		if l.from.IsZero() {
			l.from = f.From.Time
		}
		if len(d.Problems().Under(at)) > 0 {
			continue // a key has no value of its kind
		}
		if len(e.Provider) == 0 {
			d.Problemf(at+".provider", "missing; write the name of a provider, or \"*\"")
		}
		if len(e.Model) == 0 {
			d.Problemf(at+".model", "missing; write the name of a model, or \"*\"")
		}
		l.rate = rateOf(d, at, e.Input, e.Output, e.CacheRead, e.CacheWrite, e.CacheHour)
		if o := e.Over; o != nil {
			r := rateOf(d, at+".over", o.Input, o.Output, o.CacheRead, o.CacheWrite, o.CacheHour)
			if l.rate.Over, l.rate.OverTokens = &r, o.Tokens; o.Tokens < 1 {
				d.Problemf(at+".over.tokens", "must be the number of tokens of a prompt above which these rates count")
			}
		}
		if len(d.Problems().Errors()) == wrong {
			t.lines = append(t.lines, l)
		}
	}
	return t, d.Problems()
}

// date is a day.
type date struct{ time.Time }

// UnmarshalText reads a day such as 2026-01-31.
func (d *date) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.DateOnly, string(b))
	if err != nil {
		return fmt.Errorf("%q is not a date such as 2026-01-31", b)
	}
	d.Time = t
	return nil
}

// rateOf reads the rates of a line. What a cache costs is what input costs, if it is not said; one for an hour costs twice as much as Anthropic has it, where writing
// one costs more than input.
func rateOf(d *yamlfile.Doc, at string, input, output, cacheRead, cacheWrite, cacheHour *float64) Rate {
	read := func(key string, v *float64, def int64) int64 {
		switch {
		case v == nil && def < 0:
			d.Problemf(at+"."+key, "missing; write dollars per million tokens")
			return 0
		case v == nil:
			return def
		case !(*v >= 0 && *v <= MaxRate):
			d.Problemf(at+"."+key, "%v is not between 0 and %d dollars per million tokens", *v, MaxRate)
			return 0
		}
		return rate(*v)
	}
	in := read("input", input, -1)
	r := Rate{Input: in, Output: read("output", output, -1), CacheRead: read("cache_read", cacheRead, in), CacheWrite: read("cache_write", cacheWrite, in)}
	hour := r.CacheWrite
	if r.CacheWrite > in {
		hour = max(hour, 2*in)
	}
	r.CacheHour = read("cache_write_1h", cacheHour, hour)
	return r
}

// Lookup returns the rate of a model of a provider at a time, and where it stands: that of the line which
// names the model most exactly, and of several such the latest that had begun. names are those of the provider
// and of its driver.
func (t *Table) Lookup(names []string, model string, at time.Time) (rate Rate, source string, ok bool) {
	var best *line
	exact := -1
	for i := range t.lines {
		l := &t.lines[i]
		if l.from.After(at) || !l.of(names) {
			continue
		}
		n := longest(l.models, model)
		if n > exact || n == exact && n >= 0 && !l.from.Before(best.from) {
			best, exact = l, n
		}
	}
	if best == nil {
		return Rate{}, "", false
	}
	return best.rate, best.source, true
}

func (l *line) of(names []string) bool {
	for _, n := range names {
		if n != "" && longest(l.providers, n) >= 0 {
			return true
		}
	}
	return false
}

// longest returns how long the longest of the patterns is that matches a name, stars not counted; -1 if none
// does. A name in full goes before every pattern.
func longest(patterns []string, name string) int {
	best := -1
	for _, p := range patterns {
		switch {
		case p == name:
			return 1 << 20
		case matches(p, name):
			best = max(best, len(p)-strings.Count(p, "*"))
		}
	}
	return best
}

// matches reports whether a pattern, in which * stands for anything, is that of a name.
func matches(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name = name[i+len(part):]
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// Models returns the names of the models of which a rate of a provider stands here at a time, and that are no patterns of dated or unnamed ones, in
// the order of the table. names are those of the provider and of its driver.
func (t *Table) Models(names []string, at time.Time) (out []string) {
	for i := range t.lines {
		l := &t.lines[i]
		if l.from.After(at) || !l.of(names) {
			continue
		}
		for _, m := range l.models {
			name, _ := strings.CutSuffix(m, "*")
			if name != "" && !strings.Contains(name, "*") && !strings.HasSuffix(name, "-20") && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Models is Table.Models over all of them, each name once.
func (b Book) Models(names []string, at time.Time) (out []string) {
	for _, t := range b {
		for _, m := range t.Models(names, at) {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// Book is several tables, of which the first that knows a model counts.
type Book []*Table

// Lookup is Table.Lookup over all of them.
func (b Book) Lookup(names []string, model string, at time.Time) (Rate, string, bool) {
	for _, t := range b {
		if r, source, ok := t.Lookup(names, model, at); ok {
			return r, source, true
		}
	}
	return Rate{}, "", false
}
