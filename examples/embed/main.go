// Command embed is a program with a kernel of its own, in a module of its own: it runs agents the way rnix does, without a daemon. It shows what
// processes have for working together: inputs, pipes, messages, groups, signals, threads and coroutines; then a history that is cut off and
// goes on, a second model for one that cannot answer, and a secret that is kept out of the record. Its models answer from scripts, so that it
// runs anywhere; a driver of drivers/llm in their place makes it real.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"rnix/drivers/llm"
	"rnix/embed"
	"rnix/kernel"
	"rnix/types"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "embed:", err)
		os.Exit(1)
	}
}

// models are what the agents of this program answer, by provider.
var models = map[string]string{
	"analyst": `
version: "1"
responses:
  - content: I read the code first.
    tool_calls: [{name: plan, input: {steps: [read, report]}}]
  - content: The parser has no tests.
`,
	"writer": `
version: "1"
responses:
  - content: "# Docs: what is tested, and what is not"
`,
	"busy": `
version: "1"
responses:
  - {content: never, delay: 1h}
`,
	"slow": `
version: "1"
responses:
  - content: I plan, and then I work.
    tool_calls: [{name: plan, input: {steps: [work]}}]
  - {content: The work is done., delay: 1h}
`,
	"down": `
version: "1"
responses:
  - error: {code: SERVICE_UNAVAILABLE, message: it is down}
`,
	"deployer": `
version: "1"
responses:
  - content: deployed with correct-horse-battery
`,
}

// token is a secret of this program.
const token = "correct-horse-battery"

// program is a kernel and where it tells what happens.
type program struct {
	kern *kernel.KernelImpl
	out  io.Writer
}

func (p *program) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// open makes a system with the models. dir is where its histories are; empty = nothing is kept.
func open(dir string) (*embed.System, error) {
	var drivers []llm.LLMDriver
	for name, script := range models {
		driver, err := llm.ParseReplay(name, name+".yaml", []byte(script))
		if err != nil {
			return nil, err
		}
		drivers = append(drivers, driver)
	}
	return embed.Open(embed.Options{Dir: dir, Models: drivers, Secrets: map[string]string{"DEPLOY_TOKEN": token}})
}

// closed suspends what runs in a system, and gives its directory back.
func closed(ctx context.Context, s *embed.System) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.Close(ctx)
}

func run(ctx context.Context, out io.Writer) (err error) {
	sys, err := open("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed(ctx, sys)) }()
	p := &program{sys.Kernel, out}
	for _, show := range []func(context.Context) error{p.inputs, p.stream, p.messages, p.pipes, p.groups, p.signals, p.threads, p.coroutines, p.histories} {
		if err := show(ctx); err != nil {
			return err
		}
	}
	return nil
}

// busy starts an agent that works until it is killed.
func (p *program) busy(parent types.PID) (types.PID, error) {
	return p.kern.Spawn("Keep working", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "busy"}, ParentPID: parent})
}

// inputs gives the result of one agent to the next: spawn "..." | spawn "..." in Go.
func (p *program) inputs(ctx context.Context) error {
	first, err := p.kern.Spawn("Analyze the code", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "analyst"}})
	if err != nil {
		return err
	}
	analysis, err := p.kern.WaitInfo(ctx, first)
	if err != nil {
		return err
	}
	second, err := p.kern.Spawn("Generate docs", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "writer"},
		Inputs: []kernel.Input{{Name: "pipe", Text: analysis.Result}}})
	if err != nil {
		return err
	}
	docs, err := p.kern.WaitInfo(ctx, second)
	p.say("inputs: %q became %q", analysis.Result, docs.Result)
	return err
}

// stream reads what an agent says while it says it, as another process.
func (p *program) stream(ctx context.Context) error {
	reader, err := p.busy(0)
	if err != nil {
		return err
	}
	// Who is born into a subtree that is paused waits: so the pipe is there before the first word.
	if _, err := p.kern.SignalTree(reader, types.SIGPAUSE); err != nil {
		return err
	}
	writer, err := p.kern.Spawn("Analyze the code", nil, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "analyst"}, ParentPID: reader})
	if err != nil {
		return err
	}
	fd, err := p.kern.PipeOutput(writer, reader)
	if err != nil {
		return err
	}
	if _, err := p.kern.SignalTree(reader, types.SIGRESUME); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	var text strings.Builder
	for {
		n, err := p.kern.VFS().ReadInto(ctx, reader, fd, buf)
		text.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	p.say("stream: %q", text.String())
	return p.kern.Kill(reader, types.SIGKILL)
}

// messages go from one process to another.
func (p *program) messages(context.Context) error {
	senderPID, err := p.busy(0)
	if err != nil {
		return err
	}
	targetPID, err := p.busy(0)
	if err != nil {
		return err
	}
	if err := p.kern.Send(senderPID, targetPID, []byte("the tests are green")); err != nil {
		return err
	}
	msg, err := p.kern.Recv(targetPID)
	if err != nil {
		return err
	}
	p.say("messages: %q", msg.Data)
	return errors.Join(p.kern.Kill(senderPID, types.SIGTERM), p.kern.Kill(targetPID, types.SIGTERM))
}

// pipes carry bytes from one process to another, and end with them.
func (p *program) pipes(ctx context.Context) error {
	writerPID, err := p.busy(0)
	if err != nil {
		return err
	}
	readerPID, err := p.busy(0)
	if err != nil {
		return err
	}
	writeFD, readFD, err := p.kern.Pipe(writerPID, readerPID)
	if err != nil {
		return err
	}
	if err := p.kern.VFS().Write(ctx, writerPID, writeFD, []byte("through the pipe")); err != nil {
		return err
	}
	if err := p.kern.Kill(writerPID, types.SIGKILL); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, err := p.kern.VFS().ReadInto(ctx, readerPID, readFD, buf)
	if err != nil {
		return err
	}
	_, end := p.kern.VFS().ReadInto(ctx, readerPID, readFD, buf)
	p.say("pipes: %q, then %v", buf[:n], end)
	return p.kern.Kill(readerPID, types.SIGKILL)
}

// groups take one signal to all of their members.
func (p *program) groups(ctx context.Context) error {
	groupID := p.kern.NewGroup()
	var pids []types.PID
	for range 3 {
		pid, err := p.busy(0)
		if err != nil {
			return err
		}
		if err := p.kern.JoinGroup(pid, groupID); err != nil {
			return err
		}
		pids = append(pids, pid)
	}
	if err := p.kern.LeaveGroup(pids[0], groupID); err != nil {
		return err
	}
	members, err := p.kern.GetProcGroup(groupID)
	if err != nil {
		return err
	}
	if err := p.kern.SignalGroup(groupID, types.SIGTERM); err != nil {
		return err
	}
	for _, pid := range members {
		if _, err := p.kern.Wait(pid); err != nil {
			return err
		}
	}
	i, err := p.kern.Info(pids[0])
	p.say("groups: %d members ended, who had left is %s", len(members), i.StateName())
	return errors.Join(err, p.kern.Kill(pids[0], types.SIGKILL))
}

// signals can be blocked, reach a whole subtree, and have handlers.
func (p *program) signals(context.Context) error {
	pid, err := p.busy(0)
	if err != nil {
		return err
	}
	for range 2 {
		if _, err := p.busy(pid); err != nil {
			return err
		}
	}
	affected, err := p.kern.SignalTree(pid, types.SIGPAUSE) // the whole subtree
	if err != nil {
		return err
	}
	if _, err := p.kern.SignalTree(pid, types.SIGRESUME); err != nil {
		return err
	}
	handled := 0
	err = errors.Join(
		p.kern.SetHandler(pid, types.SIGINT, func(types.Signal) { handled++ }),
		p.kern.Signal(pid, types.SIGINT),
		p.kern.SigBlock(pid, types.SIGTERM),
		p.kern.Signal(pid, types.SIGTERM),
	)
	if err != nil {
		return err
	}
	i, err := p.kern.Info(pid)
	if err != nil {
		return err
	}
	before := i.StateName()
	if err := p.kern.SigUnblock(pid, types.SIGTERM); err != nil { // delivers what is pending
		return err
	}
	exit, err := p.kern.Wait(pid)
	p.say("signals: %d paused at once, %d handled, %s while SIGTERM was blocked, then %s", affected, handled, before, exit.Reason)
	return err
}

// threads work side by side in one process, and end with it.
func (p *program) threads(context.Context) error {
	pid, err := p.busy(0)
	if err != nil {
		return err
	}
	proc, ok := p.kern.Process(pid)
	if !ok {
		return errors.New("the process is gone")
	}
	var tids []types.TID
	for _, part := range []string{"security", "style"} {
		tid, err := proc.SpawnThread("Analyze "+part, func(t *kernel.Thread) {
			t.Finish(part+" is fine", t.Context().Err()) // a kill of the process ends its context
		})
		if err != nil {
			return err
		}
		tids = append(tids, tid)
	}
	for _, tid := range tids {
		t, err := proc.Thread(tid)
		if err != nil {
			return err
		}
		text, err := t.Join()
		if err != nil {
			return err
		}
		p.say("threads: %d: %s", tid, text)
	}
	return p.kern.Kill(pid, types.SIGKILL)
}

// coroutines run only while somebody resumes them, from one Yield to the next.
func (p *program) coroutines(context.Context) error {
	pid, err := p.busy(0)
	if err != nil {
		return err
	}
	proc, ok := p.kern.Process(pid)
	if !ok {
		return errors.New("the process is gone")
	}
	items := []string{"one", "two"}
	coid, err := proc.SpawnCoroutine("Stream processor", func(co *kernel.Coroutine) {
		for _, item := range items {
			co.Yield(strings.ToUpper(item)) // hands the value over and waits
		}
	})
	if err != nil {
		return err
	}
	for {
		value, err := proc.ResumeCoroutine(coid)
		if types.CodeOf(err) == types.ErrNotFound {
			break // it has ended
		}
		if err != nil {
			return err
		}
		p.say("coroutines: %v", value)
	}
	return p.kern.Kill(pid, types.SIGKILL)
}
