package agent

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/internal/yamlfile"
)

// MCPEntry is a configured MCP server with its origin. It can be used unless Problems.Errors is not
// empty.
type MCPEntry struct {
	MCPServer
	Source   string   // file:line
	Scope    string   // project or user
	Shared   bool     // it stands in the project's .mcp.json, which offers it to all who work there
	Problems Problems // of this server
}

// mcpFile is .mcp.json or mcp.yaml. Both may use either word for the table.
type mcpFile struct {
	MCPServers map[string]mcpServer `yaml:"mcpServers"`
	Servers    map[string]mcpServer `yaml:"servers"`
}

// mcpServer is one server as it is written.
type mcpServer struct {
	Type           string            `yaml:"type"`
	TransportType  string            `yaml:"transport_type"`
	Command        string            `yaml:"command"`
	Args           []string          `yaml:"args"`
	Env            map[string]string `yaml:"env"`
	URL            string            `yaml:"url"`
	Headers        map[string]string `yaml:"headers"`
	Disabled       bool              `yaml:"disabled"`
	Timeout        seconds           `yaml:"timeout"`
	SpawnTimeout   seconds           `yaml:"spawn_timeout"`
	MountTimeout   seconds           `yaml:"mount_timeout"`
	RequestTimeout seconds           `yaml:"request_timeout"`
	MaxOutput      int               `yaml:"max_output"`
	Sandbox        ServerSandbox     `yaml:"sandbox"`
}

// seconds is a Duration that may also be written as a number of seconds. It is never Off.
type seconds Duration

func (s *seconds) UnmarshalText(text []byte) error {
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		var d Duration
		if err := d.UnmarshalText(text); err != nil {
			return err
		}
		n = time.Duration(d).Seconds()
	}
	if !(n > 0) || n > 24*3600 || math.IsNaN(n) {
		return fmt.Errorf("%s must be more than 0 and at most 24h; leave the key out for the usual time", text)
	}
	*s = seconds(math.Ceil(n * float64(time.Second)))
	return nil
}

// ParseMCP reads the text of a .mcp.json or, if file does not end in ".json", of an mcp.yaml, sorted
// by name. Variables in command, args, env, url and headers are replaced by lookup; with a nil
// lookup they are left as they stand. A server with a mistake is there too, with its Problems; the
// Problems that are returned besides are those of the file as a whole.
func ParseMCP(src []byte, file string, lookup Lookup) ([]MCPEntry, Problems) {
	isJSON := strings.HasSuffix(file, ".json")
	o := yamlfile.Options{File: file, JSON: isJSON, AllowEmpty: true}
	if isJSON {
		o.Unknown = yamlfile.Warn // other programs read this file too, and have keys of their own
	}
	var f mcpFile
	d := yamlfile.Decode(src, &f, o)
	var out []MCPEntry
	var keys []string
	for table, servers := range map[string]map[string]mcpServer{"mcpServers": f.MCPServers, "servers": f.Servers} {
		for name, s := range servers {
			key := table + "." + name
			if _, twice := f.MCPServers[name]; twice && table == "servers" {
				d.Problemf(key, "is also under mcpServers; remove one")
				continue
			}
			keys = append(keys, key)
			out = append(out, MCPEntry{MCPServer: s.server(d, key, name, lookup), Source: d.Origin(key)})
		}
	}
	all := d.Problems()
	rest := slices.Clone(all)
	for i := range out {
		out[i].Problems = all.Under(keys[i])
		rest = slices.DeleteFunc(rest, func(p Problem) bool { return slices.Contains(out[i].Problems, p) })
	}
	slices.SortFunc(out, func(a, b MCPEntry) int { return strings.Compare(a.Name, b.Name) })
	return out, rest
}

// server checks what was written and replaces variables.
func (s mcpServer) server(d *yamlfile.Doc, key, name string, lookup Lookup) MCPServer {
	expand := func(sub, text string) string {
		if lookup == nil || !strings.Contains(text, "${") {
			return text
		}
		v, err := Expand(text, lookup)
		if err != nil {
			d.Problemf(key+"."+sub, "%v", err)
		}
		return v
	}
	m := MCPServer{
		Name: name, Type: s.kind(d, key), Disabled: s.Disabled, MaxOutput: s.MaxOutput, Sandbox: s.Sandbox,
		SpawnTimeout: Duration(s.SpawnTimeout), MountTimeout: Duration(s.MountTimeout), RequestTimeout: Duration(s.RequestTimeout),
		Command: expand("command", s.Command), URL: expand("url", s.URL),
		Shown: strings.TrimSpace(s.URL + " " + strings.Join(append([]string{s.Command}, s.Args...), " ")),
	}
	if m.RequestTimeout == 0 {
		m.RequestTimeout = Duration(s.Timeout)
	}
	for i, a := range s.Args {
		m.Args = append(m.Args, expand("args["+itoa(i)+"]", a))
	}
	m.Env = expandAll("env", s.Env, expand)
	m.Headers = expandAll("headers", s.Headers, expand)
	if !ValidName(name) || strings.Contains(name, ".") {
		d.Problemf(key, "%q cannot be the name of a server; use letters, digits, '-' and '_', at most 64", name)
	}
	for k := range s.Env {
		if !envPattern().MatchString(k) {
			d.Problemf(key+".env", "%q cannot be the name of a variable", k)
		}
	}
	s.checkSandbox(d, key, m.Type)
	if s.MaxOutput < 0 {
		d.Problemf(key+".max_output", "is negative; leave it out for the usual size")
	}
	if m.Type == "http" && m.URL != "" && len(d.Problems().Under(key+".url")) == 0 && lookup != nil {
		if u, err := url.Parse(m.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			d.Problemf(key+".url", "must begin with http:// or https:// and name a host")
		}
	}
	return m
}

func expandAll(key string, in map[string]string, expand func(key, text string) string) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		out[k] = expand(key+"."+k, v)
	}
	return out
}

// kind returns the transport, and checks that what it needs is there and nothing else.
func (s mcpServer) kind(d *yamlfile.Doc, key string) string {
	at, t := "type", s.Type
	if t == "" && s.TransportType != "" {
		at, t = "transport_type", s.TransportType
	} else if s.TransportType != "" && s.TransportType != t {
		d.Problemf(key+".transport_type", "is %q, but type is %q; remove one", s.TransportType, t)
	}
	switch t {
	case "":
		t = "stdio"
		if s.URL != "" && s.Command == "" {
			t = "http"
		}
	case "stdio", "http":
	case "streamable-http", "streamable_http":
		t = "http"
	case "sse":
		d.Problemf(key+"."+at, `"sse" is no longer part of MCP; if the server speaks streamable HTTP, write "http"`)
	default:
		d.Problemf(key+"."+at, `%q is not known; write "stdio" or "http"`, t)
	}
	switch {
	case t == "stdio" && s.Command == "":
		d.Problemf(key, "command is missing; it names the program to start")
	case t == "stdio" && s.URL != "":
		d.Problemf(key+".url", `is for type "http" only; remove it or the command`)
	case t == "http" && s.URL == "":
		d.Problemf(key, "url is missing")
	case t == "http" && s.Command != "":
		d.Problemf(key+".command", `is for type "stdio" only; remove it or the url`)
	}
	return t
}
