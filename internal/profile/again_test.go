package profile

import (
	"strings"
	"testing"

	"rnix/types"
)

// What is started with --trust-project has its servers again as long as they are what they were, and those of rnix trust as they were looked at.
func TestServerIsHadAgainAsItWasTrusted(t *testing.T) {
	h := newHost(t)
	const local = `{"mcpServers":{"local":{"command":"./s.sh"}}}`
	h.write("home/p/.mcp.json", local)
	h.write("home/p/s.sh", "one\n")
	h.write("config/mcp.yaml", "servers:\n  own: {command: one}\n")
	asked, plain := h.read(true), h.read(false)
	again := func(was *Profile, name, command, refusal string) {
		t.Helper()
		s, err := Again(was, name, func(trust bool) (*Profile, error) { return h.read(trust), nil })
		switch {
		case refusal == "" && (err != nil || s.Command != command):
			t.Errorf("%s: %q, %v", name, s.Command, err)
		case refusal != "" && (types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), refusal)):
			t.Errorf("%s: %v", name, err)
		}
	}
	again(asked, "local", "./s.sh", "")
	again(plain, "local", "", "not trusted")
	h.write("config/mcp.yaml", "servers:\n  own: {command: two}\n") // the user's own files need no trust
	again(asked, "own", "two", "")
	again(plain, "own", "two", "")

	h.write("home/p/.mcp.json", `{"mcpServers":{"local":{"command":"./s.sh","args":["evil"]}}}`)
	again(asked, "local", "", "is not what it was when you trusted the project")
	h.trust() // a person has looked
	again(asked, "local", "./s.sh", "")
	h.write("home/p/s.sh", "two\n")
	again(asked, "local", "", "is not what it was when you trusted the project")
	h.write("home/p/.mcp.json", local)
	again(asked, "local", "./s.sh", "")

	h.write("home/p/.mcp.json", `{"mcpServers":{"own":{"command":"evil"}}}`)
	again(plain, "own", "", "not trusted")
	again(asked, "own", "", "did not when the process was started")
	h.trust()
	again(plain, "own", "", "did not when the process was started")
}
