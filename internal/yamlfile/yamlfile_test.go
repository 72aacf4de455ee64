package yamlfile

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

type inner struct {
	Name string `yaml:"name"`
	Size *int   `yaml:"size"`
}

type sample struct {
	Title string            `yaml:"title"`
	On    bool              `yaml:"on"`
	Rate  float64           `yaml:"rate"`
	Count int               `yaml:"count"`
	Tags  []string          `yaml:"tags"`
	Env   map[string]string `yaml:"env"`
	Inner inner             `yaml:"inner"`
	Many  map[string]inner  `yaml:"many"`
	Since stamp             `yaml:"since"`
}

type stamp struct{ t time.Duration }

func (s *stamp) UnmarshalText(b []byte) (err error) {
	s.t, err = time.ParseDuration(string(b))
	return err
}

func TestAllProblemsAreReportedTogetherWithTheirPlaces(t *testing.T) {
	var s sample
	d := Decode([]byte("titel: x\non: yes\ncount: many\nrate: 1.5\ntags: one\ninner:\n  size: -3\n  nam: a\nrate: 2\nsince: 5\n"), &s, Options{File: "f.yaml"})
	got := d.Problems().Error()
	for _, want := range []string{
		`f.yaml:1:1: titel: unknown key; did you mean "title"?`,
		"f.yaml:2:5: on: this is a text, but must be true or false",
		"f.yaml:3:8: count: this is a text, but must be a whole number",
		"f.yaml:5:7: tags: this is a text, but must be a list; write [one] for a list of one",
		`f.yaml:8:3: inner.nam: unknown key; did you mean "name"?`,
		"f.yaml:9:1: rate: the key stands here a second time; the first is in line 4",
		"f.yaml:10:8: since: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if s.Rate != 1.5 || s.Inner.Size == nil || *s.Inner.Size != -3 {
		t.Errorf("right keys were lost: %+v", s)
	}
	err := d.Problems().Err("Load", "f.yaml")
	var ps Problems
	if types.CodeOf(err) != types.ErrInvalid || !errors.As(err, &ps) || len(ps) != 7 {
		t.Errorf("err %v holds %d problems", err, len(ps))
	}
}

// A limit with nothing behind it must not be no limit; a section whose keys are all comments says nothing.
func TestAKeyWithoutAValueIsRefusedExceptForASection(t *testing.T) {
	src := []byte("title:\ninner:\n  size: ~\ntags:\nrate: null\nenv:\nflag:\n")
	for unknown, want := range map[Unknown]string{
		Refuse: "title inner.size tags rate flag",
		Warn:   "tags", // of another program
	} {
		var s struct {
			Title string `yaml:"title"`
			Inner struct {
				Size *int `yaml:"size"`
			} `yaml:"inner"`
			Tags []string          `yaml:"tags"`
			Rate float64           `yaml:"rate"`
			Env  map[string]string `yaml:"env"`
			Flag bool              `yaml:"flag"`
		}
		var keys []string
		for _, p := range Decode(src, &s, Options{File: "f", Unknown: unknown}).Problems() {
			keys = append(keys, p.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%v: problems of %q, want %q", unknown, got, want)
		}
	}
	var s sample
	if d := Decode([]byte("inner:\n"), &s, Options{File: "f"}); len(d.Problems()) > 0 {
		t.Errorf("an empty section: %v", d.Problems())
	}
}

func TestLargeNumbersKeepTheirDigits(t *testing.T) {
	var s struct {
		Args map[string]any `yaml:"args"`
	}
	d := Decode([]byte("args: {a: 18446744073709551615, b: 5}\n"), &s, Options{File: "f"})
	if ps := d.Problems(); len(ps) != 0 || s.Args["a"] != uint64(math.MaxUint64) || s.Args["b"] != int64(5) {
		t.Errorf("%v, problems %v", s.Args, ps)
	}
}

func TestBombsAndGarbageAreRefusedQuickly(t *testing.T) {
	for name, src := range map[string]string{
		"laughs":    "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
		"deep":      "title: " + strings.Repeat("[", 200) + strings.Repeat("]", 200),
		"very deep": strings.Repeat("[", 200_000),
		"merge":     "<<: {title: x}\n",
		"large":     strings.Repeat("# comment\n", 40_000),
		"many":      "tags: [" + strings.Repeat("a,", 20_000) + "]",
		"documents": "title: a\n---\ntitle: b\n",
		"nul":       "title: \x00",
		"latin":     "title: \xff",
		"list":      "- a",
		"scalar":    "hello",
		"empty":     "# nothing\n",
	} {
		start := time.Now()
		if ps := Decode([]byte(src), &sample{}, Options{File: "f"}).Problems(); len(ps.Errors()) == 0 {
			t.Errorf("%s: accepted", name)
		}
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%s took %v", name, d)
		}
	}
	if ps := Decode([]byte("# nothing\n"), &sample{}, Options{AllowEmpty: true}).Problems(); len(ps) != 0 {
		t.Errorf("an empty file that is allowed: %v", ps)
	}
}

func TestJSONHasPositionsToo(t *testing.T) {
	var s sample
	d := Decode([]byte("{\n\t\"title\": \"\\ud83d\\ude00\",\n\t\"env\": {\"PORT\": 80},\n\t\"count\": 1.5,\n\t\"count\": 2\n}"), &s, Options{File: "f.json", JSON: true})
	got := d.Problems().Error()
	if !strings.Contains(got, "f.json:4:11: count: this is a number, but must be a whole number") || !strings.Contains(got, "f.json:5:2: count: the key stands here a second time") {
		t.Error(got)
	}
	if s.Title != "😀" || s.Env["PORT"] != "80" {
		t.Errorf("%+v", s)
	}
	for _, src := range []string{"{", `{"title": }`, `{} {}`, `{"a":1,}`, "// c\n{}", strings.Repeat("[", 9000)} {
		if len(Decode([]byte(src), &s, Options{JSON: true}).Problems()) == 0 {
			t.Errorf("%.20q accepted", src)
		}
	}
}

func TestNearestFindsTypingMistakesOnly(t *testing.T) {
	keys := []string{"max_steps", "models", "name", "openai", "anthropic"}
	for word, want := range map[string]string{
		"max-steps": "max_steps", "maxsteps": "max_steps", "max_setps": "max_steps", "nmae": "name", "model": "models",
		"anthropc": "anthropic", "OpenAI": "openai", "zebra": "", "x": "", "": "",
	} {
		if got := Nearest(word, keys); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("title: x\ntags: [a, b]\nmany: {a: {name: b, size: 1}}\n"), false)
	f.Add([]byte(`{"title":"x","env":{"A":1}}`), true)
	f.Fuzz(func(t *testing.T, src []byte, isJSON bool) {
		var s sample
		d := Decode(src, &s, Options{File: "f", JSON: isJSON})
		for _, p := range d.Problems() {
			if p.Message == "" || p.Line < 0 {
				t.Fatalf("%#v", p)
			}
		}
		if isJSON && len(d.Problems()) == 0 && !json.Valid([]byte(strings.TrimPrefix(string(src), "\ufeff"))) {
			t.Fatal("accepted what is not JSON")
		}
	})
}
