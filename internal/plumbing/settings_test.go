package plumbing

import (
	"slices"
	"testing"
)

func TestSettingsOfTheCallersEnvironmentAreContinued(t *testing.T) {
	got := Given([]string{"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=1", "GIT_CONFIG_KEY_1=c.d", "GIT_CONFIG_VALUE_1=2=3"}, []Setting{{"e.f", "4"}})
	want := []string{"GIT_CONFIG_KEY_0=a.b", "GIT_CONFIG_VALUE_0=1", "GIT_CONFIG_KEY_1=c.d", "GIT_CONFIG_VALUE_1=2=3", "GIT_CONFIG_KEY_2=e.f", "GIT_CONFIG_VALUE_2=4", "GIT_CONFIG_COUNT=3"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, count := range []string{"x", "-1", "99999999"} {
		if got := Given([]string{"GIT_CONFIG_COUNT=" + count}, []Setting{{"e.f", "4"}}); got[len(got)-1] != "GIT_CONFIG_COUNT=1" {
			t.Errorf("%s: %q", count, got)
		}
	}
}
