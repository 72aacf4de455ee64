package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
)

func TestRealClaudeThatCrashesIsReportedAndGoesOn(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.allowed("Bash")
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		if vendortest.Heard(r, "You were interrupted") {
			return llmtest.Reply{Text: "went on"}
		}
		return use("Bash", map[string]any{"command": waits, "description": "waits"})
	})
	u.must("run", "--detach", "--harness", "claude", "--name", "p", "wait for the gate")
	u.exists("began")
	killed := false
	for _, pid := range u.children() {
		if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil && strings.Contains(exe, "claude") {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
		}
	}
	u.eventually(`ended without a result`, "log", "p")
	if out := u.must("wait", "p"); !killed || !strings.Contains(out, "went on") {
		t.Errorf("%v %s\n%s", killed, out, u.must("log", "p"))
	}
}
