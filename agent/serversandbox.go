package agent

import (
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/sandbox"
	"rnix/internal/yamlfile"
)

// ServerSandbox is what an MCP server needs besides what every server has, as it is written: by itself one reads what the commands of its process
// read, writes its working directory only where that was made for the process, and has the network. Part of the on-disk format.
type ServerSandbox struct {
	// Level is auto, bwrap, landlock or off; empty = that of the process. Off, and landlock, which protects less than auto, are the user's only; auto
	// is no less than that of the process.
	Level sandbox.Level `json:"level,omitempty" yaml:"level"`
	// Net is open, hosts or none; empty = open, or hosts where some are named.
	Net sandbox.Net `json:"net,omitempty" yaml:"net"`
	// Hosts are those that it reaches where Net is hosts.
	Hosts []string `json:"hosts,omitempty" yaml:"hosts"`
	// Read, Write and Hide are files or trees: absolute, below ~, or below the working directory, which is ".". Those of Read, and of Write all
	// but the working directory, are the user's only.
	Read  []string `json:"read,omitempty" yaml:"read"`
	Write []string `json:"write,omitempty" yaml:"write"`
	Hide  []string `json:"hide,omitempty" yaml:"hide"`
}

// IsZero reports whether nothing is said.
func (s ServerSandbox) IsZero() bool { return s.Equal(ServerSandbox{}) }

// Equal reports whether both say the same.
func (s ServerSandbox) Equal(o ServerSandbox) bool {
	return s.Level == o.Level && s.Net == o.Net && slices.Equal(s.Hosts, o.Hosts) && slices.Equal(s.Read, o.Read) && slices.Equal(s.Write, o.Write) && slices.Equal(s.Hide, o.Hide)
}

// WritesWork reports whether the working directory is to be written.
func (s ServerSandbox) WritesWork() bool {
	return slices.ContainsFunc(s.Write, func(path string) bool { return filepath.Clean(path) == "." })
}

// Paths returns the paths as absolute ones, given the user's home and the server's working directory, but without the latter itself.
func (s ServerSandbox) Paths(home, work string) sandbox.Paths {
	absolute := func(paths []string) (out []string) {
		for _, path := range paths {
			rest, below := strings.CutPrefix(path+"/", "~/")
			switch path = filepath.Clean(path); {
			case below:
				out = append(out, filepath.Join(home, rest))
			case filepath.IsAbs(path):
				out = append(out, path)
			case path != ".":
				out = append(out, filepath.Join(work, path))
			}
		}
		return out
	}
	return sandbox.Paths{Read: absolute(s.Read), Write: absolute(s.Write), Hide: absolute(s.Hide)}
}

// checkSandbox reports what is not right in what a server says of its sandbox.
func (s mcpServer) checkSandbox(d *yamlfile.Doc, key, kind string) {
	key += ".sandbox"
	if kind == "http" && !s.Sandbox.IsZero() {
		d.Problemf(key, `is for type "stdio" only: a server that is reached by an address is not started here; remove it`)
		return
	}
	if (sandbox.Settings{Level: s.Sandbox.Level}).Check() != nil {
		d.Problemf(key+".level", "%q is not known; write auto, bwrap, landlock or off", s.Sandbox.Level)
	}
	if (sandbox.Settings{Net: s.Sandbox.Net}).Check() != nil {
		d.Problemf(key+".net", "%q is not known; write none, hosts or open", s.Sandbox.Net)
	}
	if len(s.Sandbox.Hosts) > 0 && s.Sandbox.Net != "" && s.Sandbox.Net != sandbox.NetHosts {
		d.Problemf(key+".hosts", "are named, but the network is %s; set it to hosts, or remove them", s.Sandbox.Net)
	}
	for i, host := range s.Sandbox.Hosts {
		if err := hosts.Check(hosts.Say("", host)); err != nil {
			d.Problemf(key+".hosts["+itoa(i)+"]", "%s", permit.Reason(err))
		}
	}
	for _, list := range []struct {
		name  string
		paths []string
	}{{"read", s.Sandbox.Read}, {"write", s.Sandbox.Write}, {"hide", s.Sandbox.Hide}} {
		for i, path := range list.paths {
			switch {
			case strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0):
				d.Problemf(key+"."+list.name+"["+itoa(i)+"]", "is no path; write one such as ~/notes, or . for the working directory")
			case slices.Contains(strings.Split(path, "/"), ".."):
				d.Problemf(key+"."+list.name+"["+itoa(i)+"]", "%q leads upwards; write an absolute path, or one that begins with ~/", path)
			}
		}
	}
}

// projectSandbox returns what a server that a project names cannot say of its sandbox, which are the user's words.
func (e *MCPEntry) projectSandbox() (ps Problems) {
	const move = "; name the server in the mcp.yaml of your own configuration to allow it"
	problem := func(text string) {
		ps = append(ps, Problem{File: e.Source, Message: "sandbox." + text + move})
	}
	if e.Sandbox.Level == sandbox.LevelOff {
		problem("level: a project cannot switch the sandbox of a server off")
	}
	if e.Sandbox.Level == sandbox.LevelLandlock {
		problem("level: a project cannot choose landlock, which protects less than auto")
	}
	if len(e.Sandbox.Read) > 0 {
		problem("read: a project cannot give a server paths to read")
	}
	for _, path := range e.Sandbox.Write {
		if filepath.Clean(path) != "." {
			problem("write: a project can give a server nothing to write but its working directory, which is \".\"")
			break
		}
	}
	return ps
}
