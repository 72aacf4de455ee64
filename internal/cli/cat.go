package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rnix/ipc"
)

func catCmd(a *app) *cobra.Command {
	var as string
	limit := 4 << 20
	c := &cobra.Command{
		Use:   "cat PATH...",
		Short: "read paths of the name space",
		Long: `Cat reads paths of the name space that agents see: /proc/<process>/status, /dev/clock, /dev/llm,
and files of this system as /dev/fs followed by their absolute path. A path is read as you, with the
current directory as the workspace, or with --as as a process: then it is what that process sees.`,
		Example:           examples(`rnix cat /proc/3/status`, `rnix cat /proc/night/intent`, `rnix cat /dev/fs$PWD/README.md`, `rnix cat --as 3 /dev/fs$PWD/go.mod`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: completePaths(a),
		Args:              argsOf(1, -1, "a path, such as /proc/3/status"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			var first error
			for _, path := range args {
				err := cat(c.Context(), client, a.out, ipc.PathRequest{Path: path, As: as, Cwd: a.host.Dir, Env: a.host.Environ, Max: limit})
				first = firstError(a.out, first, err, len(args) > 1)
			}
			return first
		},
	}
	c.Flags().StringVar(&as, "as", "", "read as this process does")
	c.Flags().IntVar(&limit, "max", limit, "bytes to read at most")
	_ = c.RegisterFlagCompletionFunc("as", completeProcs(a, false))
	return c
}

// cat reads one path.
func cat(ctx context.Context, c *ipc.Client, out *output, req ipc.PathRequest) error {
	var err error
	if req.Path, err = vfsPath(ctx, c, req.Path); err != nil {
		return err
	}
	if req.Max < 1 {
		return usagef("", "--max %d: give a number of bytes", req.Max)
	}
	r, err := ipc.Call(ctx, c, ipc.ReadPath, req)
	if err != nil {
		return ended(err, req.Path)
	}
	showData(out, req.Path, &r)
	if r.Cut && !out.json() {
		out.warn(fmt.Sprintf("%s: these are the first %s bytes; there are more, see --max", oneLine(req.Path), number(len(r.Data))))
	}
	return nil
}

// pathData is what was read, for programs: text where it is text. Part of the wire format of --json.
type pathData struct {
	Path string  `json:"path"`
	Text *string `json:"text,omitempty"`
	Data []byte  `json:"data,omitempty"` // in base64, where it is not text in UTF-8
	Cut  bool    `json:"cut,omitempty"`
}

func showData(out *output, path string, r *ipc.PathResponse) {
	if out.json() {
		d := pathData{Path: path, Cut: r.Cut}
		if text := string(r.Data); utf8.ValidString(text) {
			d.Text = &text
		} else {
			d.Data = r.Data
		}
		out.object(&d)
		return
	}
	out.raw(r.Data)
	if out.out.terminal && len(r.Data) > 0 && r.Data[len(r.Data)-1] != '\n' {
		out.print("\n")
	}
}

// vfsPath checks a path that somebody typed, and finds the process in it.
func vfsPath(ctx context.Context, c *ipc.Client, path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", usagef("a file of the current directory is /dev/fs$PWD/"+strings.TrimPrefix(path, "./"), "%q is not a path of the name space: those begin with a slash", path)
	}
	return procPath(ctx, c, path)
}
