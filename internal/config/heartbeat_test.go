package config

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
)

func TestTheHeartbeatIsTheUsers(t *testing.T) {
	s := sources(t, map[string]string{
		"user/config.yaml":    "heartbeat:\n  stall: 0\n  policy: restart\n  interval: 10s\n",
		"project/config.yaml": "heartbeat: {enabled: false}\n",
	}, "RNIX_HEARTBEAT_MAX_RESTARTS", "5", "RNIX_HEARTBEAT_ENABLED", "true")
	c := Load(s)
	user := filepath.Join(s.UserDir, "config.yaml")
	want := Heartbeat{
		Enabled: Value[bool]{true, "environment RNIX_HEARTBEAT_ENABLED"}, Stall: Value[agent.Duration]{agent.Off, user + ":2"},
		Policy: Value[HeartbeatPolicy]{"restart", user + ":3"}, Interval: Value[agent.Duration]{agent.Duration(10 * time.Second), user + ":4"},
		MaxRestarts: Value[int]{5, "environment RNIX_HEARTBEAT_MAX_RESTARTS"},
	}
	if diff := cmp.Diff(want, c.Heartbeat); diff != "" {
		t.Error(diff)
	}
	if len(c.Problems) != 1 || c.Problems[0].Key != "heartbeat.enabled" {
		t.Errorf("what a project says: %v", c.Problems)
	}
}

func TestWhatCannotBeOfTheHeartbeatDoesNotCount(t *testing.T) {
	s := sources(t, map[string]string{"user/config.yaml": "heartbeat: {policy: shoot, interval: 10ms, max_restarts: -1}\n"})
	c := Load(s)
	var d Config
	d.heartbeatDefaults()
	if diff := cmp.Diff(d.Heartbeat, c.Heartbeat); diff != "" || len(c.Problems) != 3 {
		t.Errorf("%s %v", diff, c.Problems)
	}
}
