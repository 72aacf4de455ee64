package compose

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestItemsAreTheSameAfterARestart(t *testing.T) {
	items, err := Items("list", `[12345678901234567890, 1.0, {"id": 9007199254740993}, "${index}"]`, 10)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(Note{Phase: Expanded, Items: items})
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, "agents:\n  list: {intent: x}\n  each: {intent: \"${item}\", foreach: {from: list}}\n")
	s, err := NewState(p, nil, map[string]json.RawMessage{"each": b})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range items {
		if was, now := Text(x), Text(s.Item(Key{"each", i})); was != now {
			t.Errorf("item %d was %s and is %s", i, was, now)
		}
	}
}

func TestAListOfTheFileNeedsNoMax(t *testing.T) {
	list := strings.TrimSuffix(strings.Repeat("x,", MaxFan), ",")
	f, ps := parse(t, "agents:\n  each: {intent: \"${item}\", foreach: ["+list+"]}\n", nil)
	if len(ps) > 0 || f.Agents["each"].ForEach.Limit() < MaxFan {
		t.Error(ps, f.Agents["each"].ForEach.Limit())
	}
	if _, ps = parse(t, "agents:\n  each: {intent: \"${item}\", foreach: ["+list+",x]}\n", nil); !strings.Contains(fmt.Sprint(ps), "at most 1000") {
		t.Error(ps)
	}
}

func TestNotesOfEveryKindCanBeReadAgain(t *testing.T) {
	p := plan(t, "agents:\n  a: {intent: x, retries: {max: 2, on: [timeout]}}\n")
	for _, kind := range append([]Kind{"", Cancelled, Refused}, retryable...) {
		b, err := json.Marshal(Note{Phase: Failed, Attempt: 1, First: 1, Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewState(p, nil, map[string]json.RawMessage{"a": b})
		if err != nil {
			t.Errorf("%q: %v", kind, err)
		} else if n, _ := s.Latest(Key{"a", -1}); n.Kind != kind {
			t.Errorf("%q has become %q", kind, n.Kind)
		}
	}
	if _, ps := parse(t, "agents:\n  a: {intent: x, retries: {max: 2, on: [cancelled]}}\n", nil); len(ps) == 0 {
		t.Error("what a person has ended is not tried again")
	}
}
