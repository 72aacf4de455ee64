package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/ipc"
)

func lsCmd(a *app) *cobra.Command {
	var as string
	var long bool
	c := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "list a directory of the name space",
		Long: `Ls lists what stands below a path of the name space that agents see, / if none is given. Directories
end in a slash.`,
		Example:           examples(`rnix ls`, `rnix ls /dev`, `rnix ls -l /dev/fs$PWD`, `rnix ls /proc/3`),
		Annotations:       exits("0 1 2 10 11 12"),
		ValidArgsFunction: onlyFirst(completePaths(a)),
		Args:              argsOf(0, 1, ""),
		RunE: func(c *cobra.Command, args []string) error {
			path := "/"
			if len(args) > 0 {
				path = args[0]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			return ls(c.Context(), client, a.out, ipc.PathRequest{Path: path, As: as, Cwd: a.host.Dir, Env: a.host.Environ}, long)
		},
	}
	c.Flags().StringVar(&as, "as", "", "read as this process does")
	c.Flags().BoolVarP(&long, "long", "l", false, "with size and time")
	_ = c.RegisterFlagCompletionFunc("as", completeProcs(a, false))
	return c
}

// ls lists one path.
func ls(ctx context.Context, c *ipc.Client, out *output, req ipc.PathRequest, long bool) error {
	var err error
	if req.Path, err = vfsPath(ctx, c, req.Path); err != nil {
		return err
	}
	r, err := ipc.Call(ctx, c, ipc.ListPath, req)
	if err != nil {
		return ended(err, req.Path)
	}
	if out.json() {
		for i := range r.Entries {
			out.object(&r.Entries[i])
		}
		return nil
	}
	if long && len(r.Entries) > 0 {
		out.table([]column{{name: "SIZE", right: true}, {name: "MODIFIED"}, {name: "NAME"}}, longRows(r.Entries))
		return nil
	}
	var b strings.Builder
	for i := range r.Entries {
		c := entryName(&r.Entries[i])
		b.WriteString(out.out.paint(c.st, c.text) + "\n")
	}
	out.print(b.String())
	if len(r.Entries) == 0 {
		out.talk("%s is empty", oneLine(req.Path))
	}
	return nil
}

func longRows(entries []ipc.PathEntry) [][]cell {
	rows := make([][]cell, len(entries))
	for i := range entries {
		e := &entries[i]
		when := "-"
		if !e.Mtime.IsZero() {
			when = e.Mtime.Local().Format(time.DateTime)
		}
		rows[i] = []cell{text(size(e.Size)), text(when), entryName(e)}
	}
	return rows
}

// entryName is a name on one line; what a terminal would obey or break at is quoted away.
func entryName(e *ipc.PathEntry) cell {
	name := strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(debug.Sanitize(e.Name))
	if e.IsDir {
		return cell{strings.TrimSuffix(name, "/") + "/", bold}
	}
	return text(name)
}
