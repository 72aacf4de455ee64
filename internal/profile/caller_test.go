package profile

import (
	"testing"
	"time"

	"rnix/agent"
	"rnix/drivers/shell"
	"rnix/internal/config"
	"rnix/vfs"
)

func TestShellTimeoutIsWhatTheCallersConfigurationSays(t *testing.T) {
	for said, want := range map[agent.Duration]time.Duration{
		0: 0, agent.Off: shell.MaxTimeout, agent.Duration(time.Hour): time.Hour,
	} {
		p := &Profile{Config: config.Config{ShellTimeout: config.Value[agent.Duration]{V: said}}}
		if got := ShellTimeout(vfs.Caller{Profile: p}); got != want {
			t.Errorf("%q: %v, want %v", said, got, want)
		}
	}
	if got := ShellTimeout(vfs.Caller{}); got != 0 {
		t.Errorf("a caller without configuration: %v", got)
	}
}
