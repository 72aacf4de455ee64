package types

import (
	"fmt"
	"strings"
)

// MCPDown is an MCP server of a process that cannot be reached, as lists of such servers name it: "tracker: no such file".
type MCPDown string

// Server returns the name of the server.
func (d MCPDown) Server() string {
	name, _, _ := strings.Cut(string(d), ": ")
	return name
}

// Reload returns the command with which a person starts it again for the process pid.
func (d MCPDown) Reload(pid PID) string {
	name := d.Server()
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || strings.HasPrefix(name, "-") {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return fmt.Sprintf("rnix mcp reload --process %s %s", pid, name)
}
