package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

// maxWrite is how many bytes are written at once; the wire needs the rest of its limit.
const maxWrite = 5 << 20

func writeCmd(a *app) *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:   "write PATH [DATA...]",
		Short: "write to a device and print its reply",
		Long: `Write writes the data to a path of the name space that agents see, and shows what can be read
afterwards: the output of a command, the answer of a model. The data is the arguments, or standard
input with "-" or when nothing is given and standard input is not a terminal. Devices take a request
as a JSON object; for /dev/shell a command line will do.`,
		Example:           examples(`rnix write /dev/shell 'echo hello'`, `rnix write --as 3 /dev/shell 'git status'`, `rnix write /dev/workspace/notes.md - < notes.md`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: onlyFirst(completePaths(a)),
		Args:              argsOf(1, -1, "a path, such as /dev/shell, and the data"),
		RunE: func(c *cobra.Command, args []string) error {
			data := []byte(strings.Join(args[1:], " "))
			if len(args) == 2 && args[1] == "-" || len(args) == 1 && !terminal(a.host.In) {
				var err error
				if data, err = a.stdin("the data", maxWrite); err != nil {
					return err
				}
			} else if len(args) == 1 {
				return usagef("", "there is no data: give it as an argument, or - for standard input")
			}
			if len(data) > maxWrite {
				return usagef("", "the data is longer than %s bytes; write it in parts", number(maxWrite))
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return write(c.Context(), client, a.out, ipc.PathRequest{Path: args[0], As: as, Cwd: a.host.Dir, Env: a.host.Environ, Data: data})
		},
	}
	c.Flags().StringVar(&as, "as", "", "write as this process does")
	_ = c.RegisterFlagCompletionFunc("as", completeProcs(a, false))
	return c
}

// write writes one path.
func write(ctx context.Context, c *ipc.Client, out *output, req ipc.PathRequest) error {
	var err error
	if req.Path, err = vfsPath(ctx, c, req.Path); err != nil {
		return err
	}
	if req.Path == "/dev/shell" {
		req.Data = shellRequest(req.Data)
	}
	r, err := ipc.Call(ctx, c, ipc.WritePath, req)
	if err != nil {
		return err
	}
	showData(out, req.Path, &r)
	if r.Cut && !out.json() {
		out.warn("the answer was longer; this is its beginning")
	}
	return nil
}

// shellRequest makes a command line the request that /dev/shell takes; what is a request stays one.
func shellRequest(data []byte) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) == nil {
		return data
	}
	request, err := encode(struct {
		Command string `json:"command"`
	}{string(data)})
	if err != nil {
		return data
	}
	return request
}
