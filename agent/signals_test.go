package agent

import (
	"strings"
	"testing"
)

func TestAManifestNamesOnlySignalsThatAnAgentMayBlock(t *testing.T) {
	for src, want := range map[string]string{
		"blocked_signals: [SIGTERM, SIGINT]":                     "",
		"blocked_signals: [SIGTERM]\non_interrupt: sum up":       "",
		"blocked_signals: [SIGKILL]":                             "agent.yaml:1:19: blocked_signals[0]: SIGKILL cannot be blocked",
		"blocked_signals: [SIGPAUSE]":                            "cannot block SIGPAUSE",
		"blocked_signals: [SIGTERM, SIGTERM]":                    "stands here a second time",
		"on_interrupt: '  '":                                     "it has no text",
		"blocked_signals: [SIGUSR1]":                             "SIGUSR1",
		"blocked_signals: [SIGINT]\non_interrupt: sum up":        "leave one of them out",
		"on_interrupt: " + strings.Repeat("x", maxOnInterrupt+1): "longer than 1024 bytes",
	} {
		_, err := ParseManifest([]byte(src), "a")
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60s: %v, want %q", src, err, want)
		}
	}
}
