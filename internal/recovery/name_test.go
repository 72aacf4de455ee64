package recovery

import (
	"encoding/json"
	"testing"

	"rnix/internal/step"
)

func TestANameCountsUntilTheNextRunHasItsOwn(t *testing.T) {
	h := &step.History{}
	s := new(State)
	add := func(name, text, detail string) {
		r := step.Record{Seq: s.Seq + 1, Kind: step.KindMarker, Marker: &step.Marker{Name: name, Text: text, Detail: json.RawMessage(detail)}}
		s.Apply(&r)
		h.Records = append(h.Records, r)
	}
	says := func(what, want string) {
		t.Helper()
		was, err := s.Was()
		if info := h.Info(); err != nil || was.Name != want || info.Name != want {
			t.Errorf("%s: it goes on as %q, and the list says %q, want %q (%v)", what, was.Name, info.Name, want, err)
		}
	}
	add(step.MarkerSpawn, "work", `{"name":"draft"}`)
	says("at the start", "draft")
	add(step.MarkerName, "night", "")
	says("renamed", "night")
	add(step.MarkerExit, "done", "")
	add(step.MarkerName, "", "")
	says("without a name, after its end", "")
	if h.Info().State.String() != "dead" || s.Phase != Ended {
		t.Error("a new name has taken its end back")
	}
	add(step.MarkerResumed, "", `{"name":"fork"}`)
	says("in a run that has another name", "fork")
}
