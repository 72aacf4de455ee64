package step

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

func skillMark(t testing.TB, s *story, name, text string) {
	t.Helper()
	d, err := json.Marshal(SkillDetail{Name: name, Section: "# Skill: " + name + "\n" + text})
	must(t, err)
	s.add(Record{Kind: KindMarker, Marker: &Marker{Name: MarkerSkill, Text: name, Detail: d}})
}

// TestAnActivatedSkillIsInTheHistoryAndInTheProfileOfItsContext also looks at a run that began with it: then it stands behind the project's
// document, and each part is counted once.
func TestAnActivatedSkillIsInTheHistoryAndInTheProfileOfItsContext(t *testing.T) {
	s := begin("go")
	skillMark(t, s, "tidy", "Leave no mess.")
	skillMark(t, s, "tidy", "Leave no mess.")
	meta := metaOf(0)
	want := "system,skills:tests,project,skills:tidy,tools"
	heads := func(o ProfileOptions) (names string, bytes int) {
		p := s.profile(t, o)
		var out []string
		for _, x := range p.Sections {
			if n := strings.TrimSuffix(x.Section+":"+x.Name, ":"); slices.Contains(strings.Split(want, ","), n) {
				out, bytes = append(out, n), bytes+x.Bytes
			}
		}
		slices.Sort(out)
		return strings.Join(out, ","), bytes
	}
	sorted := strings.Split(want, ",")
	slices.Sort(sorted)
	names, bytes := heads(ProfileOptions{Meta: meta})
	if names != strings.Join(sorted, ",") {
		t.Errorf("sections are %s", names)
	}
	i := s.history(t).Info()
	if got := i.Skills; !slices.Equal(got, []string{"tests", "tidy"}) {
		t.Errorf("skills %q", got)
	}

	system, skills := WithSkills(meta.SystemPrompt, []string{"tests"}, []SkillDetail{{Name: "tidy", Section: "# Skill: tidy\nLeave no mess."}})
	s.mark(MarkerResumed, "", Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{Intent: "go", WorkDir: "/w", Skills: skills}}, SystemPrompt: system})
	meta.SystemPrompt = system
	if names2, bytes2 := heads(ProfileOptions{Meta: meta}); names2 != names || bytes2 != bytes {
		t.Errorf("before the resume %s in %d bytes, after it %s in %d", names, bytes, names2, bytes2)
	}
	if got := s.history(t).Info().Skills; !slices.Equal(got, []string{"tests", "tidy"}) {
		t.Errorf("skills after the resume %q", got)
	}
}

func TestSkillsAreAddedOnceAndNothingIsChangedInPlace(t *testing.T) {
	names := append(make([]string, 0, 4), "a")
	system, all := WithSkills("", names, []SkillDetail{{"b", "# Skill: b\nB"}, {"a", "again"}, {"b", "again"}})
	if system != "# Skill: b\nB" || !slices.Equal(all, []string{"a", "b"}) || names[:2][1] != "" {
		t.Errorf("%q %q, and %q behind the names that were given", system, all, names[:2][1])
	}
	for _, m := range []Marker{{Name: MarkerSkill}, {Name: MarkerSkill, Detail: []byte(`{"section":"x"}`)}, {Name: MarkerName, Detail: []byte(`{"name":"x"}`)}} {
		if s, ok := Activated(&m); ok {
			t.Errorf("%+v is %+v", m, s)
		}
	}
}
