package agent

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rnix/internal/yamlfile"
)

const (
	mcpRoot   = "/mnt/mcp"
	modelRoot = "/dev/llm"
	procRoot  = "/proc"
)

// Devices returns what lists of devices name in a system without devices of its own.
func Devices() []string {
	return []string{"/dev/clock", "/dev/fs", modelRoot, "/dev/shell", "/dev/web", "/dev/workspace", mcpRoot, procRoot}
}

// sysRights are the rights to the kernel's own actions, which are given and taken like devices.
var sysRights = []string{"/sys/ask", "/sys/send", "/sys/signal", "/sys/spawn"}

// CheckDevice says why a path cannot stand in a list of devices that are allowed or, with deny, refused; nil if it can.
// devices are those that there are. What is accepted is what the kernel checks whenever a process opens something: to deny
// anything else, such as a directory below /dev/fs, would deny nothing, as a request names that and not what is opened.
func CheckDevice(name string, deny bool, devices []string) error {
	known := append(slices.Clone(devices), sysRights...)
	slices.Sort(known)
	say := func(format string, args ...any) error {
		reason := fmt.Sprintf(format, args...)
		if near := yamlfile.Nearest(name, known); near != "" && near != name {
			reason += "; did you mean " + near + "?"
		}
		return errors.New(reason + "; available: " + strings.Join(known, ", "))
	}
	server, inServer, ok := serverPath(name)
	switch {
	case name == "":
		return say("it is empty")
	case !strings.HasPrefix(name, "/"):
		return say("device paths begin with a slash, such as /dev/shell")
	case strings.ContainsFunc(name, unicode.IsControl):
		return say("it contains a control character")
	case path.Clean(name) != name && !strings.HasPrefix(inServer, "resources/"):
		return say(`want %s, without "." and "..", and without doubled or trailing slashes`, path.Clean(name))
	case slices.Contains(known, name) || slices.ContainsFunc(known, func(k string) bool { return below(k, name) }):
		return nil
	case ok && !ValidName(server):
		return say("%q cannot be the name of an MCP server", server)
	case ok && inServer == "":
		return nil
	case ok && !deny:
		return say("a server is allowed as a whole: allow %s/%s, and deny the tools that are not to be used", mcpRoot, server)
	case ok && !(strings.HasPrefix(inServer+"/", "tools/") || strings.HasPrefix(inServer+"/", "resources/")):
		return say("an MCP server has tools and resources: deny %s/%s/tools/NAME, or all of the server", mcpRoot, server)
	case ok:
		return nil
	}
	if provider, in := strings.CutPrefix(name, modelRoot+"/"); in && slices.Contains(devices, modelRoot) {
		if !ValidName(provider) {
			return say("want %s/PROVIDER", modelRoot)
		}
		return nil
	}
	if pid, in := strings.CutPrefix(name, procRoot+"/"); in && slices.Contains(devices, procRoot) {
		if n, err := strconv.ParseUint(pid, 10, 64); pid != "self" && (err != nil || n == 0 || strconv.FormatUint(n, 10) != pid) {
			return say("want %s/PID or %s/self: the files of a process are allowed and denied together", procRoot, procRoot)
		}
		return nil
	}
	for _, d := range devices {
		if below(name, d) {
			return errors.New("rights end at the device, so this would have no effect: name all of " + d)
		}
	}
	return say("there is no such device")
}

// serverPath splits a path below the MCP servers into the name of one and what is in it.
func serverPath(name string) (server, in string, ok bool) {
	rest, ok := strings.CutPrefix(name, mcpRoot+"/")
	server, in, _ = strings.Cut(rest, "/")
	return server, in, ok
}

// below reports whether a path lies below a directory, or is it.
func below(name, dir string) bool {
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}
