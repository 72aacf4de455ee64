package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/agent"
	"rnix/types"
	"rnix/vfs"
)

// mcpRoot is where MCP servers are mounted, each as <pid>-<server>.
const mcpRoot = "/mnt/mcp"

// modelRoot is where models are.
const modelRoot = "/dev/llm"

// ErrNoProcess is the cause of NOT_FOUND errors about processes.
var ErrNoProcess = errors.New("no such process")

// errLeaving is the cause of errors about a parent that takes no children any more.
var errLeaving = errors.New("the parent is ending")

// Passing reports whether a call has failed because a process has left the table, or is about to: it has ended then or is
// suspended, and the call can be made again.
func Passing(err error) bool { return errors.Is(err, ErrNoProcess) || errors.Is(err, errLeaving) }

// SpawnOpts says how to start a process. The zero value is a top-level process with the agent's own
// settings and all rights. Pointers tell "not said" from zero.
type SpawnOpts struct {
	types.ProcSpec
	UUID      types.UUID // zero = a new one
	ParentPID types.PID  // 0 = started by a person

	// FailedSteps is after how many steps in a row in which every call failed it ends; 0 = 40, negative = never.
	FailedSteps int

	CtxSize int           // messages; 0 = no limit (budgets and windows count tokens)
	Timeout time.Duration // of the whole process, pauses left out; 0 = none

	// Recorded says that the lists stand in a history, where one of an earlier version may hold what has no effect: it
	// is kept and not refused.
	Recorded bool

	WorkDir   string // absolute; empty = the parent's
	ReadRoots []string

	MCP []agent.MCPServer // besides the agent's

	// Inputs are data that go with the intent: the process is told them with it, marked as data and cut
	// where they are long, and finds each as a whole at /proc/self/inputs/<name>. The one named "pipe" is
	// what came out of a pipe. They stay with the history.
	Inputs []Input
	// Attachments are images and documents that the model is shown with its intent, or with From.Input. They stay with the history.
	Attachments []vfs.Attachment

	// Env is the composed environment of OS children. Secret looks up credentials for drivers. Both
	// are kept in memory only.
	Env    []string
	Secret func(name string) (string, bool)
	// Profile is handed to devices as Caller.Profile. The kernel does not look at it.
	Profile any
	// Settings is kept in the history, for a later run: what the assembly needs to make Profile again. It
	// must hold no secrets.
	Settings json.RawMessage

	// Groups are the process groups that it is in from the beginning.
	Groups []types.PGID

	// From continues a history, whose UUID is given; nil = a new one begins.
	From *From

	Body Body // what runs in place of the reasoning loop; nil = an agent
}

// Spawn starts a process that works on intent as agent, and returns its PID. It settles every value
// (call, then agent, then default), opens the model, mounts the agent's MCP servers and starts the
// reasoning goroutine. If anything fails, everything before it is taken back and only the PID is
// spent.
func (k *KernelImpl) Spawn(intent string, ag *agent.Agent, opts SpawnOpts) (types.PID, error) {
	return k.SpawnContext(context.Background(), intent, ag, opts)
}

// SpawnContext is Spawn with a context for the work of starting (mounting servers can take long). The
// end of ctx after SpawnContext returned means nothing to the process.
func (k *KernelImpl) SpawnContext(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (types.PID, error) {
	p, err := spawnBy(ctx, k, k.table.caller(opts.ParentPID), intent, ag, opts)
	if err != nil {
		return 0, err
	}
	return p.PID, nil
}

// spawn is SpawnContext for callers that need the process, which may have ended and be gone already.
func (k *KernelImpl) spawn(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (*Process, error) {
	b := birth{k: k, start: time.Now(), ag: ag}
	err := b.settle(intent, opts)
	if err == nil {
		err = b.carry(ctx)
	}
	if err != nil {
		if f := opts.From; f != nil {
			_ = f.Rec.Close() // err matters more
		}
		return nil, err
	}
	b.launch()
	return b.p, nil
}

// withIdentity tells OS children to which process of which kernel they belong, so that an rnix that they start makes
// child processes of it.
func withIdentity(env []string, p *Process, address []string) []string {
	own := append([]string{"RNIX_PARENT_PID=" + p.PID.String(), "RNIX_UUID=" + p.UUID.String()}, address...)
	out := make([]string, 0, len(env)+len(own))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !slices.ContainsFunc(own, func(o string) bool { return strings.HasPrefix(o, name+"=") }) {
			out = append(out, kv)
		}
	}
	return append(out, own...)
}

func orDefault(s, def string) string {
	if s != "" {
		return s
	}
	return def
}

// modelPath returns the path of the model device: /dev/llm/<provider>, with
// /fallback/<provider>[/<model>] behind it if there is one.
func modelPath(o SpawnOpts) string {
	path := modelRoot + "/" + o.Provider
	if o.FallbackProvider != "" || o.FallbackModel != "" {
		path += "/fallback/" + orDefault(o.FallbackProvider, o.Provider)
		if o.FallbackModel != "" {
			path += "/" + o.FallbackModel
		}
	}
	return path
}

// childName is the name of a child process that was given none.
func childName(parent *Process, n int) string {
	return orDefault(parent.Name(), parent.PID.String()) + "." + strconv.Itoa(n)
}
