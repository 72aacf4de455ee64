package price

import (
	_ "embed"
	"fmt"
	"strconv"
	"sync"
	"time"

	"rnix/internal/yamlfile"
)

//go:embed windows.yaml
var builtInWindows []byte

// windows is the table of context windows that comes with the program. Nobody changes it.
var windows = sync.OnceValue(func() []window {
	ws, ps := parseWindows(builtInWindows, "built-in")
	if len(ps) > 0 {
		panic(ps.Error()) // a test reads it
	}
	return ws
})

// window is a line of windows.yaml.
type window struct {
	line           // without a rate
	prompt, answer int
}

type windowEntry struct {
	Provider yamlfile.Words `yaml:"provider"`
	Model    yamlfile.Words `yaml:"model"`
	Window   int            `yaml:"window"`
	Answer   int            `yaml:"answer"`
	Source   string         `yaml:"source"`
}

// parseWindows reads windows.yaml.
func parseWindows(src []byte, name string) ([]window, yamlfile.Problems) {
	var f struct {
		Version string        `yaml:"version"`
		From    date          `yaml:"from"`
		Windows []windowEntry `yaml:"windows"`
	}
	d := yamlfile.Decode(src, &f, yamlfile.Options{File: name})
	var out []window
	for i, e := range f.Windows {
		if len(e.Provider) == 0 || len(e.Model) == 0 || e.Source == "" || e.Answer < 0 || e.Answer >= e.Window {
			d.Problemf("windows["+strconv.Itoa(i)+"]", "provider, model and source are needed, and a window that is larger than its answer")
			continue
		}
		out = append(out, window{line{providers: e.Provider, models: e.Model, from: f.From.Time, source: e.Source}, e.Window - e.Answer, e.Answer})
	}
	return out, d.Problems()
}

// Window returns how many tokens a prompt for a model may have: its context window, without what is kept there for the answer. from says
// where that is stated; "" if it is not known. names are those of the provider and of its driver.
func Window(names []string, model string) (tokens int, from string) {
	exact := -1
	for _, w := range windows() {
		n := longest(w.models, model)
		if n <= exact || !w.of(names) {
			continue
		}
		exact, tokens, from = n, w.prompt, w.source
		if w.answer > 0 {
			from = fmt.Sprintf("%s (%d tokens, of which %d are for the answer)", from, w.prompt+w.answer, w.answer)
		}
		from += ", read " + w.from.Format(time.DateOnly)
	}
	return tokens, from
}
