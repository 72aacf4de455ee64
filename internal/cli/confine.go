package cli

import (
	"encoding"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/types"
)

// confineFlags adds the flags that say how the commands of a process are confined.
func confineFlags(c *cobra.Command, level, net *string, bounds *types.Bounds, allow *[]string) {
	c.Flags().StringVar(level, "sandbox", "", "confine its commands by: auto (what works here), bwrap, landlock; or off (see: rnix sandbox)")
	c.Flags().StringVar(net, "net", "", "network of its commands: none, hosts (those of --allow-host) or open (all); default as configured, else none")
	allowHostFlag(c, allow)
	c.Flags().Var(boundFlag[*types.Memory]{&bounds.Memory, "SIZE"}, "memory", "memory of all its commands and servers together, e.g. 4GiB, or none (see: rnix sandbox explain)")
	c.Flags().Var(boundFlag[*types.Tasks]{&bounds.Processes, "N"}, "processes", "OS processes and threads of these together, e.g. 512, or none (default as configured; at first 2048)")
	_ = c.RegisterFlagCompletionFunc("sandbox", cobra.FixedCompletions([]string{"auto", "bwrap", "landlock", "off"}, cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("net", cobra.FixedCompletions([]string{"none", "hosts", "open"}, cobra.ShellCompDirectiveNoFileComp))
}

// allowHostFlag adds the flag that names hosts.
func allowHostFlag(c *cobra.Command, to *[]string) {
	c.Flags().StringArrayVar(to, "allow-host", nil, "host that its commands may reach, e.g. npm or api.example.com:443 (repeatable)")
	_ = c.RegisterFlagCompletionFunc("allow-host", cobra.FixedCompletions(hosts.PresetNames(), cobra.ShellCompDirectiveNoFileComp))
}

// boundFlag is a flag that takes a bound.
type boundFlag[T interface {
	encoding.TextUnmarshaler
	String() string
}] struct {
	bound T
	kind  string // as help calls its value
}

func (f boundFlag[T]) Set(text string) error { return f.bound.UnmarshalText([]byte(text)) }

func (f boundFlag[T]) String() string { return "" } // help shows no default

func (f boundFlag[T]) Type() string { return f.kind }

// sandboxOf says in a few words how the commands of a process are confined; empty = not known, or it has none.
func sandboxOf(level, net string) string {
	return sandbox.Settings{Level: sandbox.Level(level), Net: sandbox.Net(net)}.Text()
}

// sayUnconfined says which of the processes that can go on run their commands outside of the sandbox.
func sayUnconfined(out *output, procs []ipc.Proc) {
	var pids []string
	for i := range procs {
		if p := &procs[i]; p.Sandbox == string(sandbox.LevelOff) && p.Kind == "" && slices.Contains([]string{"created", "running", suspended}, p.State) {
			pids = append(pids, p.PID.String())
		}
	}
	const most = 10
	switch n := len(pids); {
	case n == 0:
	case n == 1:
		out.talk("PID %s runs its commands outside of the sandbox", pids[0])
	case n > most:
		out.talk("PIDs %s and %d more run their commands outside of the sandbox", strings.Join(pids[:most], ", "), n-most)
	default:
		out.talk("PIDs %s run their commands outside of the sandbox", strings.Join(pids, ", "))
	}
}

// sandboxColumn is shown where it is known of a process how it is confined.
func sandboxColumn(procs []ipc.Proc) column {
	return column{name: "SANDBOX", max: 24, drop: 8, hide: !slices.ContainsFunc(procs, func(p ipc.Proc) bool { return p.Sandbox != "" })}
}
