package llm_test

import (
	"context"
	"testing"

	"rnix/drivers/llm"
)

// bounded is a driver that only describes itself.
type bounded struct {
	llm.LLMDriver
	info llm.DriverInfo
}

func (b bounded) Info() llm.DriverInfo { return b.info }

func TestFallbackIsBoundedByBoth(t *testing.T) {
	api := bounded{info: llm.DriverInfo{Name: "api", Driver: "anthropic", Model: "a", MaxAnswer: 1000, ExtraAnswer: 50}}
	other := bounded{info: llm.DriverInfo{Name: "other", Driver: "openai", Model: "b", MaxAnswer: 4000, LeastAnswer: 7}}
	cli := bounded{info: llm.DriverInfo{Name: "cli", Driver: "claude-cli", SaysCost: true}}
	free := bounded{info: llm.DriverInfo{Name: "free", Driver: "offline", Free: true}}
	for name, c := range map[string]struct {
		first, second    llm.LLMDriver
		max, extra, many int
		free             bool
	}{
		"both":            {api, other, 4000, 50, 1, false},
		"one cannot be":   {api, cli, 0, 50, 1, false},
		"one is free":     {free, api, 1000, 50, 1, false},
		"free at the end": {cli, free, 0, 0, 1, false},
		"both are free":   {free, free, 0, 0, 1, true},
	} {
		i := llm.NewFallback(c.first, c.second, "").Info()
		if i.MaxAnswer != c.max || i.ExtraAnswer != c.extra || len(i.Others) != c.many || i.Free != c.free || i.SaysCost {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if i := llm.NewFallback(api, other, "c").Info(); i.Others[0].Model != "c" || i.Others[0].Provider != "other" || i.LeastAnswer != 7 {
		t.Errorf("%+v", i)
	}
}

func TestReplayKnowsItsLongestAnswer(t *testing.T) {
	d, err := llm.ParseReplay("p", "s.yaml", []byte("version: \"1\"\nresponses:\n  - {content: short}\n  - {content: x, usage: {input_tokens: 900, output_tokens: 30}}\n  - {content: \"a longer one of twenty eight\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	i := d.Info()
	if i.MaxAnswer != 930 || i.LeastAnswer != 930 {
		t.Fatalf("%+v", i)
	}
	for range 3 {
		r, err := d.Call(context.Background(), llm.LLMRequest{Intent: "go", Session: "s"})
		if err != nil || r.Usage.Total() > i.MaxAnswer+len("go") {
			t.Errorf("%+v %v", r, err)
		}
	}
}
