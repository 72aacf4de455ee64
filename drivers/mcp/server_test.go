package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// modeVar makes the test binary a server instead of a test.
const modeVar = "MCP_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		serve(mode)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve is a server on standard input and output, well behaved or not.
func serve(mode string) {
	switch mode {
	case "good", "modern":
		opts := &mcp.ServerOptions{}
		if mode == "modern" {
			opts.SupportedProtocolVersions = []string{"2026-07-28"}
		}
		if err := goodServer(opts).Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	case "exits":
		fmt.Fprintln(os.Stderr, "no config file; token is "+os.Getenv("SOME_TOKEN"))
		os.Exit(3)
	case "banner":
		fmt.Println("Welcome to the server!")
	case "noisy":
		fmt.Fprint(os.Stderr, strings.Repeat("la la la\n", 8<<20/9))
	case "deaf", "deaf-silent":
		terms := make(chan os.Signal, 1)
		signal.Notify(terms, syscall.SIGTERM)
		defer func() {
			for range terms { // neither the end of its input nor SIGTERM makes it go
			}
		}()
		if mode == "deaf" {
			startGrandchild()
		}
	}
	rough(mode)
}

// goodServer is a server as it should be.
func goodServer(opts *mcp.ServerOptions) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "good", Version: "1"}, opts)
	hanging, cancelled := make(chan struct{}, 9), make(chan struct{}, 9)
	tool := func(name string, readOnly bool, h func(context.Context, map[string]any) (string, error)) {
		s.AddTool(&mcp.Tool{Name: name, Description: name + "s", InputSchema: map[string]any{"type": "object"},
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: readOnly}},
			func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				var in map[string]any
				if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
					return nil, err
				}
				if name == "echo" {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil
				}
				text, err := h(ctx, in)
				r := &mcp.CallToolResult{IsError: err != nil, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
				if err != nil {
					r.Content = []mcp.Content{&mcp.TextContent{Text: err.Error()}}
				}
				return r, nil
			})
	}
	tool("echo", true, nil)
	tool("fail", false, func(context.Context, map[string]any) (string, error) { return "", errors.New("disk on fire") })
	tool("pid", true, func(context.Context, map[string]any) (string, error) { return strconv.Itoa(os.Getpid()), nil })
	tool("env", true, func(context.Context, map[string]any) (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	tool("hang", false, func(ctx context.Context, _ map[string]any) (string, error) {
		hanging <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
		return "", ctx.Err()
	})
	tool("await-hang", true, func(context.Context, map[string]any) (string, error) { <-hanging; return "it hangs", nil })
	tool("await-cancel", true, func(context.Context, map[string]any) (string, error) { <-cancelled; return "it was cancelled", nil })
	tool("crash", false, func(context.Context, map[string]any) (string, error) {
		fmt.Fprintln(os.Stderr, "panic: the core is breached")
		os.Exit(4)
		return "", nil
	})
	tool("big", true, func(_ context.Context, in map[string]any) (string, error) {
		return strings.Repeat("x", int(in["bytes"].(float64))), nil
	})
	tool("grow", false, func(context.Context, map[string]any) (string, error) {
		s.AddTool(&mcp.Tool{Name: "grown", Description: "is new", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "grown up"}}}, nil
		})
		return "grows", nil
	})
	s.AddResource(&mcp.Resource{Name: "odd", URI: oddURI}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "read " + req.Params.URI}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello " + req.Params.Arguments["who"]}}}}, nil
	})
	return s
}

const oddURI = "bad://with/slashes?and=query&x=%2F"

// startGrandchild starts a process that leaves the server's session, and tells where it is.
func startGrandchild() {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	grandchild = cmd.Process.Pid
}

var grandchild int

// rough answers line by line, with as little protocol as possible, each mode in its own wrong way.
func rough(mode string) {
	in := bufio.NewReader(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	for page := 1; ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &req) != nil || len(req.ID) == 0 || strings.HasSuffix(mode, "silent") {
			continue
		}
		reply := func(result string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, result) }
		tool := func(name string) string { return `{"name":"` + name + `","inputSchema":{"type":"object"}}` }
		switch req.Method {
		case "initialize":
			reply(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"rough","version":"0"}}`)
		case "ping":
			reply("{}")
		case "tools/list":
			switch mode {
			case "endless":
				reply(fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, tool("t"+strconv.Itoa(page)), page))
				page++
			case "circle":
				reply(`{"tools":[` + tool("t") + `],"nextCursor":"again"}`)
			case "large":
				var all []string
				for i := range 7 {
					all = append(all, `{"name":"t`+strconv.Itoa(i)+`","description":"`+strings.Repeat("x", 1<<20)+`","inputSchema":{"type":"object"}}`)
				}
				reply(`{"tools":[` + strings.Join(all, ",") + `]}`)
			case "many":
				var all []string
				for i := range 1010 {
					all = append(all, tool("t"+strconv.Itoa(i)))
				}
				reply(`{"tools":[` + strings.Join(all, ",") + `]}`)
			case "garbage":
				fmt.Fprintln(out, `{"jsonrpc":"2.0","id":`)
			case "closes":
				_ = out.Flush()
				_ = os.Stdout.Close()
			default:
				reply(`{"tools":[` + tool("go") + `]}`)
			}
		case "tools/call":
			switch mode {
			case "flood":
				for range 25_000 {
					fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hear me"}}`)
				}
			case "wide":
				if req.Params.Name == "wide" {
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", req.ID, strings.Repeat("x", 9<<20))
					break
				}
			case "pings":
				fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
			}
			reply(fmt.Sprintf(`{"content":[{"type":"text","text":"pid %d grandchild %d"}]}`, os.Getpid(), grandchild))
		case "server/discover": // many servers do not answer what they do not know
		}
		if out.Flush() != nil || mode == "lastwords" && req.Method == "tools/call" {
			return
		}
	}
}
