// Package runtime holds nothing itself. The packages below it are what runs an agent's command line as one session of many: a work
// tree of its own, its environment, its MCP servers, its state, its lease, and word of what it does. Each can be imported without the
// others; the test of this one puts them together.
package runtime
