package config

import "testing"

func TestLimitsAreTheUsersAndNeverNone(t *testing.T) {
	s := sources(t, map[string]string{
		"user/config.yaml":    "limits: {depth: 3, children: 0, family: 20, spawn_rate: 2000000}\n",
		"project/config.yaml": "limits: {depth: 900}\n",
	}, "RNIX_LIMITS_TOTAL", "77")
	c := Load(s)
	for name, got := range map[string][2]int{
		"depth": {c.Limits.Depth.V, 3}, "children": {c.Limits.Children.V, DefaultChildren}, "family": {c.Limits.Family.V, 20},
		"total": {c.Limits.Total.V, 77}, "rate": {c.Limits.SpawnRate.V, DefaultSpawnRate},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %d, not %d", name, got[0], got[1])
		}
	}
	if len(c.Problems) != 3 {
		t.Errorf("%v", c.Problems.Strings())
	}
}
