package mail

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/internal/config"
	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// maxKey bounds the key of a message, in bytes.
const maxKey = 128

// checkSend refuses what is no message.
func checkSend(req *ipc.SendRequest) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Send", req.Target, format, args...)
	}
	switch {
	case strings.TrimSpace(req.Text) == "":
		return bad("the message is empty")
	case len(req.Text) > kernel.MaxMessage:
		return bad("the message has %d bytes and at most %d are taken: put the text into a file and send its name", len(req.Text), kernel.MaxMessage)
	case !utf8.ValidString(req.Text):
		return bad("the message is not UTF-8")
	case len(req.Key) > maxKey:
		return bad("the key has %d bytes, at most %d are taken", len(req.Key), maxKey)
	case req.TimeoutMs < 0:
		return bad("the time limit is negative; 0 means none")
	}
	return service.CheckAttached("Send", req.Attachments)
}

func (d *Service) send(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest, kind step.MailKind) (resp ipc.SendResponse, err error) {
	if err := checkSend(&req); err != nil {
		return resp, err
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	m := step.Mail{Kind: kind, Key: req.Key, Text: req.Text, Time: time.Now()}
	if err := d.speakFor(peer, t, &m); err != nil {
		return resp, err
	}
	if err := d.takes(&t, &req); err != nil {
		return resp, err
	}
	if req.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, service.Timeout(req.TimeoutMs))
		defer cancel()
	}
	resp = ipc.SendResponse{PID: t.PID, UUID: t.UUID, State: "running"}
	if t.Live != nil {
		resp.Name = t.Live.Name
	} else {
		resp.Name = t.Info.Name
	}
	var onDisk bool
	resp.Seq, onDisk, err = d.carry(ctx, t.UUID, m, service.Each(req.Attachments, service.FromAttachment), req.WaitRoom)
	switch p, alive := d.Kernel.ByUUID(t.UUID); {
	case err != nil:
		return resp, unsent(t, err)
	case onDisk:
		resp.State = "suspended"
	case alive:
		resp.PID = p.PID
		if i, ierr := d.Kernel.Info(p.PID); ierr == nil {
			resp.State = i.StateName()
		}
	}
	return resp, nil
}

// takes refuses what is attached for an agent CLI that takes no such files. Of a process that is stored it knows the providers that are built in; another one
// says in a line, when the process is resumed, what it is not shown.
func (d *Service) takes(t *service.Target, req *ipc.SendRequest) error {
	if len(req.Attachments) == 0 {
		return nil
	}
	if p, alive := d.Kernel.ByUUID(t.UUID); alive {
		i, err := d.Kernel.Info(p.PID)
		known, ok := p.Profile().(*profile.Profile)
		if err != nil || !ok {
			return nil // it is ending, or has no model
		}
		for k := range known.Providers.List {
			if pr := &known.Providers.List[k]; pr.Name == i.Provider {
				return launch.Takes("Send", pr, req.Attachments)
			}
		}
		return nil
	}
	if t.Info == nil {
		return nil
	}
	for _, name := range config.Harnesses() {
		if pr := (config.Provider{Name: t.Info.Provider, Driver: config.HarnessProvider(name)}); t.Info.Provider == pr.Driver {
			return launch.Takes("Send", &pr, req.Attachments)
		}
	}
	return nil
}

// speakFor says in whose name a client sends. One inside an agent speaks for that agent, to its relatives, and
// never for a person.
func (d *Service) speakFor(peer *ipc.Peer, t service.Target, m *step.Mail) error {
	owner, inside := d.Finder.AgentOf(peer)
	if !inside {
		return nil
	}
	if owner == 0 {
		return service.Outside("Send", owner, "")
	}
	if m.Kind == step.MailSteer {
		return service.Outside("Steer", owner, "not speak as the person whom an agent works for; use: rnix send")
	}
	if m.Key != "" {
		m.Key = "client:" + owner.String() + ":" + m.Key // none of the kernel's
	}
	i, err := d.Kernel.Info(owner)
	if err != nil {
		return err
	}
	m.From, m.FromUUID, m.Name = owner, i.UUID, i.Name
	if t.Live != nil && t.Live.State < types.StateZombie {
		return d.Kernel.MaySend(owner, t.PID)
	}
	if !i.Rights.Permits(kernel.SendRight) {
		return types.Errorf(types.ErrPermission, "Send", kernel.SendRight, "this process may not send messages")
	}
	if t.Info == nil || t.Info.ParentUUID != i.UUID && t.UUID != i.ParentUUID {
		e := service.Outside("Send", owner, "send to suspended processes only if they are its parent or its children")
		e.PID = t.PID
		return e
	}
	return nil
}

// unsent says what can be done about a message that could not be sent.
func unsent(t service.Target, err error) error {
	if types.CodeOf(err) != types.ErrBrokenPipe {
		return err
	}
	return &types.SyscallError{Syscall: "Send", PID: t.PID, Device: t.UUID.String(), Code: types.ErrBrokenPipe,
		Err: fmt.Errorf("it has ended, and gets no messages; to resume it and tell it something: rnix resume --new-input TEXT %s", t.UUID)}
}

// How long a message is tried while its receiver is neither running nor suspended, and how often.
const (
	carryTime  = 10 * time.Second
	carryAgain = 20 * time.Millisecond
)

// Carry puts a message into the mailbox of a process, or into its history if that is suspended; onDisk says
// which. A process that is just being suspended or resumed is tried again.
func (d *Service) Carry(ctx context.Context, id types.UUID, m step.Mail, waitRoom bool) (seq uint64, onDisk bool, err error) {
	return d.carry(ctx, id, m, nil, waitRoom)
}

// carry is Carry for a message with what is shown with it.
func (d *Service) carry(ctx context.Context, id types.UUID, m step.Mail, given []vfs.Attachment, waitRoom bool) (seq uint64, onDisk bool, err error) {
	for end := time.Now().Add(carryTime); ; {
		if p, alive := d.Kernel.ByUUID(id); alive {
			seq, err = d.post(ctx, p.PID, m, given, waitRoom)
			if code := types.CodeOf(err); err == nil || code != types.ErrBrokenPipe && code != types.ErrNotFound {
				return seq, false, err
			}
			select { // it is ending, and its history will say how
			case <-p.Left():
			case <-ctx.Done():
				return 0, false, err
			}
		}
		seq, err = d.Stored.Put(ctx, id, m, given)
		full := types.CodeOf(err) == types.ErrExhausted && waitRoom
		if !full && (types.CodeOf(err) != types.ErrConflict || time.Now().After(end)) {
			return seq, true, err
		}
		select {
		case <-time.After(carryAgain):
		case <-ctx.Done():
			return 0, false, types.Errorf(types.ErrTimeout, "Send", id.String(), "the message could not be sent: %w", err)
		}
	}
}

// post puts a message into the mailbox of a process that lives. What is shown with it is durable before.
func (d *Service) post(ctx context.Context, pid types.PID, m step.Mail, given []vfs.Attachment, wait bool) (seq uint64, err error) {
	if len(given) > 0 {
		return d.Kernel.PostAttached(ctx, pid, m, given, wait)
	}
	return d.Kernel.Post(ctx, pid, m, wait)
}

// Post carries a message for the kernel.
func (d *Service) Post(ctx context.Context, id types.UUID, m step.Mail) (uint64, error) {
	seq, _, err := d.Carry(ctx, id, m, false)
	return seq, err
}
