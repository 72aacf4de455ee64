package mcp_test

import (
	"fmt"
	"log"
	"path/filepath"
	"strings"

	"rnix/agent"
	"rnix/runtime/mcp"
)

func Example() {
	path, cleanup, err := mcp.Builder{Session: "s-1"}.Build([]agent.MCPServerConfig{
		{Name: "files", Command: "mcp-files", Args: []string{"/work"}, Env: map[string]string{"TOKEN": "t"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer cleanup() // start the command line with --mcp-config path, and wait for it

	fmt.Println(strings.HasPrefix(filepath.Base(path), "rnix-mcp-s-1-"))
	// Output: true
}
