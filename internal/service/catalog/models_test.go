package catalog

import (
	"io"
	"log/slog"
	"slices"
	"testing"

	"rnix/drivers/llm"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/config"
	"rnix/internal/profile"
	"rnix/types"
	"rnix/vfs"
)

// maker makes models and notes for which providers, and what it was told to end.
type maker struct {
	made  []string // by the address
	ended []string
}

func (m *maker) Make(pr config.Provider) (llm.LLMDriver, error) {
	m.made = append(m.made, pr.Name+" "+pr.BaseURL)
	return &kept{llmtest.NewScripted(), m}, nil
}

// kept is a model that keeps something for a conversation.
type kept struct {
	*llmtest.Scripted
	of *maker
}

func (k *kept) CloseSession(session string) { k.of.ended = append(k.of.ended, session) }

func (k *kept) Close() error { k.of.ended = append(k.of.ended, "all"); return nil }

// of is the profile of a client with providers.
func of(providers ...config.Provider) *profile.Profile {
	p := &profile.Profile{Lookup: func(string) (string, bool) { return "", false }}
	p.Providers.List = providers
	return p
}

func (m *maker) Metered(vfs.Caller, config.Provider) (metered bool, why string) { return false, "" }

func (m *maker) models() *Models {
	return &Models{Drivers: m, Log: slog.New(slog.DiscardHandler)}
}

// open opens a path below /dev/llm as a client with a profile.
func open(t *testing.T, m *Models, p any, path string) (vfs.VFSFile, error) {
	t.Helper()
	f, err := m.Open(path, vfs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, f.(vfs.CallerBinder).BindCaller(vfs.Caller{Profile: p})
}

// TestTheWindowIsThatOfTheModelThatIsAskedFor says that --model brings the window of that model, and not of the provider's default one.
func TestTheWindowIsThatOfTheModelThatIsAskedFor(t *testing.T) {
	made := &maker{}
	m := made.models()
	p := of(config.Provider{Name: "anthropic", Driver: config.DriverAnthropic, DefaultModel: "claude-opus-5-5"},
		config.Provider{Name: "own", Driver: config.DriverOpenAICompat, DefaultModel: "a", Windows: map[string]int{"a": 9000, "b": 700_000}, Source: "f:1"})
	for _, c := range []struct {
		path, model string
		want        int
	}{
		{"/anthropic", "", 1_000_000}, {"/anthropic", "claude-sonnet-4-5", 200_000}, {"/anthropic", "another", 0}, {"/own", "", 9000}, {"/own", "b", 700_000},
		{"/anthropic/fallback/own", "", 9000}, {"/anthropic/fallback/own/b", "", 700_000}, {"/anthropic/fallback/own/b", "claude-sonnet-4-5", 200_000}, {"/own/fallback/anthropic", "c", 1_000_000},
	} {
		f, err := m.Open(c.path, vfs.OpenReadWrite)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.(vfs.CallerBinder).BindCaller(vfs.Caller{Profile: p, Model: c.model}); err != nil {
			t.Fatal(err)
		}
		if card := f.(vfs.Modeler).ModelCard(); card.ContextWindow != c.want || (card.WindowFrom != "") != (c.want > 0) {
			t.Errorf("%s, model %q: %d tokens, from %q; want %d", c.path, c.model, card.ContextWindow, card.WindowFrom, c.want)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClientsWithTheSameConfigurationShareADriver(t *testing.T) {
	made := &maker{}
	m := made.models()
	here := config.Provider{Name: "p", Driver: config.DriverOpenAI, BaseURL: "http://a"}
	there := here
	there.BaseURL = "http://b"
	script := config.Provider{Name: "s", Driver: config.DriverReplay}
	for _, p := range []*profile.Profile{of(here, script), of(here, script), of(there), of(here)} {
		if _, err := open(t, m, p, "/p"); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"p http://a", "p http://b"}; !slices.Equal(made.made, want) {
		t.Errorf("made %q, want %q", made.made, want)
	}
	for range 2 { // it may be edited meanwhile
		if _, err := open(t, m, of(script), "/s"); err != nil {
			t.Fatal(err)
		}
	}
	if len(made.made) != 4 {
		t.Errorf("a script is read once for two runs: made %q", made.made)
	}
	id := types.UUID{1}
	m.CloseSession(id)
	if err := m.Close(); err != nil || !slices.Equal(made.ended, []string{id.String(), id.String(), "all", "all"}) {
		t.Errorf("ended %q, %v", made.ended, err)
	}
}

func TestProviderTakesAsManyCallsAtOnceAsItsConfigurationSays(t *testing.T) {
	p := of()
	p.Config.Concurrency = config.Value[int]{V: 8, Origin: "config.yaml:3:1"}
	for _, c := range []struct {
		pr   config.Provider
		n    int
		from string
	}{
		{config.Provider{Driver: config.DriverOpenAI}, 8, "concurrency in config.yaml:3:1"},
		{config.Provider{Name: "o", Driver: config.DriverOpenAI, Concurrency: 2, Source: "providers.yaml:4"}, 2, "concurrency of o in providers.yaml:4"},
		{config.Provider{Driver: config.DriverClaudeAgent}, 0, ""},
		{config.Provider{Driver: config.DriverReplay}, 0, ""},
		{config.Provider{Name: "r", Driver: config.DriverReplay, Concurrency: 3, Source: "f"}, 3, "concurrency of r in f"},
	} {
		if n, from := atOnce(p, c.pr); n != c.n || from != c.from {
			t.Errorf("%+v: %d from %q, want %d from %q", c.pr, n, from, c.n, c.from)
		}
	}
	one, _ := driverKey(p, config.Provider{Name: "p"})
	p.Config.Concurrency = config.Value[int]{V: 4, Origin: config.FromDefault}
	if _, from := atOnce(p, config.Provider{Driver: config.DriverOpenAI}); from != config.FromDefault {
		t.Error(from)
	}
	if other, _ := driverKey(p, config.Provider{Name: "p"}); one == other {
		t.Error("clients with other limits share a gate")
	}
}

func TestModelsAreThoseOfWhoOpensThem(t *testing.T) {
	made := &maker{}
	m := made.models()
	a, b := config.Provider{Name: "a", Driver: config.DriverOpenAI}, config.Provider{Name: "b", Driver: config.DriverOpenAI}
	for path, code := range map[string]types.ErrCode{"/c": types.ErrNotFound, "/a/x": types.ErrNotFound, "/a/fallback": types.ErrNotFound, "/a/fallback/c": types.ErrNotFound} {
		if _, err := open(t, m, of(a, b), path); types.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
	}
	if _, err := open(t, m, nil, "/a"); types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("without a configuration: %v", err)
	}
	f, err := open(t, m, of(a, b), "/")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := f.Read(100); string(text) != "a\nb\n" || err != nil && err != io.EOF {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := open(t, m, of(a, b), "/a/fallback/b/other-model"); err != nil {
		t.Error(err)
	}
	if slices.Sort(made.made); !slices.Equal(slices.Compact(made.made), []string{"a ", "b "}) {
		t.Errorf("made %q", made.made)
	}
}
