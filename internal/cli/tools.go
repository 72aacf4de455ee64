package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/yamlfile"
	"rnix/ipc"
	"rnix/types"
)

func toolsCmd(a *app) *cobra.Command {
	var names []string
	c := projectCmd(a, &cobra.Command{
		Use:   "tools [NAME...]",
		Short: "list the tools that agents may call, or show what some take",
		Long: `Tools lists the tools that models are offered: those of the devices, and those of the kernel. With names it
shows each of them whole, with the JSON Schema of its input.

EFFECT is what a call does to the world: none, idempotent (to make it twice is to make it once), reversible
(it changes the workspace only), external (anything else). An agent has the tools of the devices that it may
open: see rnix agents NAME, and --allow and --deny of rnix run. Tools of MCP servers: rnix mcp test SERVER.`,
		Example:     examples(`rnix tools`, `rnix tools edit_file`, `rnix tools --json | jq -r .name`, `rnix tools shell --json | jq .input_schema`),
		Annotations: exits("0 1 2 10 12"),
		Args: func(_ *cobra.Command, args []string) error {
			names = args
			return nil
		},
	}, func(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest) error {
		return listTools(ctx, c, out, req, names)
	})
	c.ValidArgsFunction = completeTools(a)
	return c
}

// listTools lists tools, or shows those of some names.
func listTools(ctx context.Context, c *ipc.Client, out *output, req ipc.ProjectRequest, names []string) error {
	r, err := ipc.Call(ctx, c, ipc.ListTools, req)
	if err != nil {
		return err
	}
	shown := r.Tools
	if len(names) > 0 {
		shown = nil
	}
	for _, name := range names {
		i := slices.IndexFunc(r.Tools, func(t ipc.ToolInfo) bool { return t.Name == name })
		if i < 0 {
			return withMend(types.Errorf(types.ErrNotFound, "", name, "no tool has this name"), nearTool(name, r.Tools))
		}
		shown = append(shown, r.Tools[i])
	}
	var rows [][]cell
	var not []string
	for i := range shown {
		t := &shown[i]
		if !t.Offered {
			not = append(not, oneLine(t.Name)+" is not offered to agents here: "+missing(t))
		}
		switch {
		case out.json():
			out.object(t)
		case len(names) > 0:
			showTool(out, t, i > 0)
		default:
			rows = append(rows, []cell{{oneLine(t.Name), bold}, text(deviceOf(t)), text(t.Effect), text(oneLine(t.Description))})
		}
	}
	if len(names) > 0 {
		showProblems(out, r.Problems)
	} else {
		out.listing([]column{{name: "TOOL"}, {name: "DEVICE", drop: 1}, {name: "EFFECT", drop: 2}, {name: "DESCRIPTION"}}, rows, "there are no tools", r.Problems)
	}
	for _, text := range not {
		out.talk("%s", text)
	}
	return nil
}

// nearTool is the mend for a tool that is not there.
func nearTool(name string, tools []ipc.ToolInfo) string {
	known := make([]string, len(tools))
	for i := range tools {
		known[i] = tools[i].Name
	}
	if n := yamlfile.Nearest(name, known); n != "" {
		return "did you mean: rnix tools " + n
	}
	return "see: rnix tools"
}

// missing says what a tool needs that agents are not offered.
func missing(t *ipc.ToolInfo) string {
	const network = "a network (--net or --allow-host of a run, or net under sandbox in config.yaml)"
	if t.Name == "web_search" {
		return "it needs a search engine (web.search in your own config.yaml), and " + network
	}
	return "it needs " + network
}

// deviceOf is where a tool is: a device, or the kernel.
func deviceOf(t *ipc.ToolInfo) string {
	if t.Path == "" || strings.HasPrefix(t.Path, "/sys/") {
		return "kernel"
	}
	return oneLine(t.Path)
}

// showTool shows a tool whole.
func showTool(out *output, t *ipc.ToolInfo, further bool) {
	if further {
		out.print("\n")
	}
	for _, l := range [][2]string{{"name", t.Name}, {"device", deviceOf(t)}, {"effect", t.Effect}, {"description", t.Description}} {
		out.print(fmt.Sprintf("%-12s %s\n", l[0], cmp.Or(oneLine(l[1]), "-")))
	}
	var b bytes.Buffer
	if json.Indent(&b, t.InputSchema, "", "  ") != nil {
		b.Reset()
		b.Write(t.InputSchema)
	}
	out.print(out.out.paint(bold, "input") + "\n" + debug.Sanitize(b.String()) + "\n")
}
