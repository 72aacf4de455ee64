package cli

import (
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
)

func TestWhatWasMissedIsSaidInItsPlaceAndInAll(t *testing.T) {
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	var m misses
	x := m.range_(1, 1, at)
	if got, want := x.line(), "missed 1 event, 1 to 1, before 12:00:00.000: they came faster than they could be shown"; got != want {
		t.Errorf("%s", got)
	}
	if m.text() == "" {
		t.Error("nothing is said in all")
	}
	m = misses{}
	m.event(&ipc.Event{Kind: event.Syscall, Time: at})
	x = m.range_(5001, 5120, at.Add(1500*time.Millisecond))
	if got, want := x.line(), "missed 120 events, 5001 to 5120, between 12:00:00.000 and 12:00:01.500: they came faster than they could be shown"; got != want {
		t.Errorf("%s", got)
	}
	lag := ipc.Event{Kind: event.Lag, Time: at, PID: 3, Text: "events 7 to 9 may be missing here, as far as they belong to this process"}
	m.event(&lag)
	if got, want := lagLine(&lag), "12:00:00.000 3 at most 3 events may be missing here, 7 to 9: the file could not be written in time"; got != want {
		t.Errorf("%s", got)
	}
	if got, want := m.text(), "events are missing in 2 places, as far as they belong to what is shown: at most 123 events"; got != want {
		t.Errorf("%s", got)
	}
	m = misses{}
	m.event(&ipc.Event{Kind: event.Lag, Time: at, PID: 3, Text: "2 lines of its events cannot be read"})
	if got, want := m.text(), "events are missing in 1 place"; got != want {
		t.Errorf("%s", got)
	}
	if (&misses{}).text() != "" {
		t.Error("nothing was missed")
	}
}

func TestAMomentIsSaidAsPeopleSayIt(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"10m": "2026-03-04T11:50:00Z", "1h30m": "2026-03-04T10:30:00Z", "3d": "2026-03-01T12:00:00Z", "0s": "2026-03-04T12:00:00Z", "11:15": "2026-03-04T11:15:00Z",
		"13:00": "2026-03-03T13:00:00Z", "00:00:01": "2026-03-04T00:00:01Z", "2026-03-01": "2026-03-01T00:00:00Z", "2026-03-01 08:30": "2026-03-01T08:30:00Z",
		"2026-03-01T08:30:00+02:00": "2026-03-01T06:30:00Z", "-5m": "", "2027-01-01": "", "soon": "", "": "", "3dd": "", "-1d": "",
	} {
		got, err := parseMoment(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("%q is %s", text, got)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%q: %s %v, want %s", text, got, err, want)
		}
	}
}
