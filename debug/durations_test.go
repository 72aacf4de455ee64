package debug

import (
	"encoding/json"
	"os"
	"testing"
	"time"
)

// The table is read by the tests of the page, too, so that a time is written in one way everywhere.
func TestDurationsAreTheSameAsOnThePage(t *testing.T) {
	data, err := os.ReadFile("testdata/durations.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		NS            time.Duration
		Duration, Age string
	}
	if err := json.Unmarshal(data, &rows); err != nil || len(rows) < 10 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if got := Duration(r.NS); got != r.Duration {
			t.Errorf("%d ns last %s, want %s", r.NS, got, r.Duration)
		}
		if got := Age(r.NS); got != r.Age {
			t.Errorf("%d ns are %s old, want %s", r.NS, got, r.Age)
		}
	}
}
