package soak

import (
	"fmt"
	"slices"
	"testing"
)

func TestEachDearTestHasItsTurnOnce(t *testing.T) {
	for i := range 100 {
		name, ran := fmt.Sprintf("TestDear/%d", i), 0
		for gate := uint64(7); gate < 7+Turns; gate++ {
			if hasTurn(name, gate, nil) {
				ran++
			}
		}
		if ran != 1 {
			t.Errorf("%s runs %d times", name, ran)
		}
	}
}

func TestWhatIsPromisedRunsInEveryGate(t *testing.T) {
	text := "| a | b | `TestOne`, `TestScripts` (`away_crash`, `away_ends`), `TestTwo` |\n`TestThree` (see `x y`)"
	got := named(text)
	if want := []string{"TestOne", "TestScripts/away_crash", "TestScripts/away_ends", "TestTwo", "TestThree"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for gate := range uint64(Turns) {
		for _, name := range []string{"TestOne", "TestOne/claude/landlock", "TestScripts/away_ends"} {
			if !hasTurn(name, gate, map[string]bool{"TestOne": true, "TestScripts/away_ends": true}) {
				t.Errorf("%s does not run in gate %d", name, gate)
			}
		}
	}
	pages, err := promised()
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 100 || !pages["TestScripts/disk_full"] || pages["TestScripts"] || !pages["TestRealCommandLinesInTheSandbox"] {
		t.Errorf("the pages name %d tests: %v", len(pages), pages)
	}
}

// dear is a test of that name which notes that it was skipped.
type dear struct {
	testing.TB
	name, why string
}

func (d *dear) Name() string     { return d.name }
func (d *dear) Helper()          {}
func (d *dear) Skip(args ...any) { d.why = fmt.Sprint(args...) }

func TestATestWaitsForItsTurn(t *testing.T) {
	t.Setenv(Env, "")
	for gate, want := range map[string]int{"": 30, "0": 10, "1": 10, "2": 10} {
		t.Setenv(TurnEnv, gate)
		ran := 0
		for i := range 30 {
			d := &dear{TB: t, name: fmt.Sprint("TestDear/", i)}
			if Turn(d); d.why == "" {
				ran++
			}
		}
		if ran < want*2/3 || ran > want*4/3 {
			t.Errorf("gate %q runs %d of 30 tests", gate, ran)
		}
	}
	t.Setenv(Env, "1")
	t.Setenv(TurnEnv, "0")
	for i := range 30 {
		d := &dear{TB: t, name: fmt.Sprint("TestDear/", i)}
		if Turn(d); d.why != "" {
			t.Errorf("a soak leaves out %s", d.name)
		}
	}
}
