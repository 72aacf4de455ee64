package step

import (
	"encoding/json"
	"slices"
	"strings"
)

// SkillDetail is the Detail of a skill marker. It holds the instructions themselves: a resume or a fork has those that the model was
// given, whatever has become of the skill's file.
type SkillDetail struct {
	Name    string `json:"name"`
	Section string `json:"section"` // as it stands in the system prompt, with its heading
}

// Activated reads a skill marker; false if m is none.
func Activated(m *Marker) (s SkillDetail, ok bool) {
	return s, m.Name == MarkerSkill && json.Unmarshal(m.Detail, &s) == nil && s.Name != ""
}

// WithSkills returns a system prompt and the names of its skills after more were activated, in order. It changes neither argument.
func WithSkills(system string, names []string, more []SkillDetail) (string, []string) {
	names = slices.Clip(names)
	for _, s := range more {
		if !slices.Contains(names, s.Name) {
			names, system = append(names, s.Name), strings.TrimPrefix(system+"\n\n"+s.Section, "\n\n")
		}
	}
	return system, names
}
