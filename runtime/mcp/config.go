// Package mcp writes the file from which an agent's command line learns of its MCP servers, and takes it away
// again. The file holds what the servers need to know, secrets too: it is for its owner alone, in a
// directory that nobody else can enter. The package owns the form and the life of these files. It starts no server, and
// does not know which command line reads them.
package mcp

import (
	"encoding/json"
	"maps"
	"slices"

	"rnix/agent"
	"rnix/types"
)

// ConfigFile is the whole file. Part of the wire format.
type ConfigFile struct {
	MCPServers map[string]Server `json:"mcpServers"`
}

// Server is one server in the file: command, args and env of type "stdio", url and headers of type "http". Part of
// the wire format.
type Server struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// StdioServer is the name that Server had when there was but one type.
//
// Deprecated: use Server.
type StdioServer = Server

// BuildConfigFile returns the file for these servers. It shares nothing with them. Errors have code INVALID and name the
// server: one without a name, with the name of another, of an unknown type, without the command or address that its type
// needs, or with what belongs to the other type.
func BuildConfigFile(servers []agent.MCPServerConfig) (ConfigFile, error) {
	file := ConfigFile{MCPServers: make(map[string]Server, len(servers))}
	for i, s := range servers {
		invalid := func(format string, args ...any) (ConfigFile, error) {
			return ConfigFile{}, types.Errorf(types.ErrInvalid, "BuildConfigFile", s.Name, format, args...)
		}
		if s.Name == "" {
			return invalid("server %d of %d has no name", i+1, len(servers))
		}
		if _, twice := file.MCPServers[s.Name]; twice {
			return invalid("two servers have this name; name one of them otherwise")
		}
		out := Server{Type: s.Type, Command: s.Command, Args: slices.Clone(s.Args), Env: maps.Clone(s.Env), URL: s.URL, Headers: maps.Clone(s.Headers)}
		switch s.Type {
		case "", agent.MCPStdio:
			out.Type = agent.MCPStdio
			if s.Command == "" {
				return invalid("a server of type stdio needs a command")
			}
			if s.URL != "" || len(s.Headers) > 0 {
				return invalid("a server of type stdio has no url and no headers; set the type to http, or leave them out")
			}
		case agent.MCPHTTP:
			if s.URL == "" {
				return invalid("a server of type http needs a url")
			}
			if s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0 {
				return invalid("a server of type http has no command, args or env; set the type to stdio, or leave them out")
			}
		default:
			return invalid("unknown type %q; it can be stdio or http", s.Type)
		}
		file.MCPServers[s.Name] = out
	}
	return file, nil
}

// encode returns the bytes of the file.
func (f ConfigFile) encode() ([]byte, error) {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Build", "", "%w", err)
	}
	return append(b, '\n'), nil
}
