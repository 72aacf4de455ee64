package recovery_test

import (
	"encoding/json"
	"testing"

	"rnix/internal/recovery"
	"rnix/internal/step"
)

// TestSkillsAreThoseSinceTheRunBegan: what was active before stands in what the run was started with.
func TestSkillsAreThoseSinceTheRunBegan(t *testing.T) {
	var s recovery.State
	seq := uint64(0)
	mark := func(name, text string, detail any) {
		d, err := json.Marshal(detail)
		if err != nil {
			t.Fatal(err)
		}
		seq++
		s.Apply(&step.Record{Seq: seq, Kind: step.KindMarker, Marker: &step.Marker{Name: name, Text: text, Detail: d}})
	}
	mark(step.MarkerSpawn, "go", step.Settled{})
	mark(step.MarkerSkill, "a", step.SkillDetail{Name: "a", Section: "A"})
	before := s
	mark(step.MarkerSkill, "b", step.SkillDetail{Name: "b", Section: "B"})
	if len(s.Skills) != 2 || s.Skills[1].Name != "b" || len(before.Skills) != 1 {
		t.Errorf("%+v, and earlier %+v", s.Skills, before.Skills)
	}
	c := s.Clone()
	if len(c.Skills) != 2 {
		t.Errorf("a copy has %+v", c.Skills)
	}
	mark(step.MarkerResumed, "", step.Settled{})
	if len(s.Skills) != 0 {
		t.Errorf("after a resume %+v", s.Skills)
	}
}
