package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// mailer carries messages to processes, running or on disk, for clients and for the kernel.
type mailer struct{ *Daemon }

func (d mailer) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.Send, func(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest) (ipc.SendResponse, error) {
		return d.send(ctx, peer, req, step.MailMessage)
	})
	on(d.Daemon, s, ipc.Steer, func(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest) (ipc.SendResponse, error) {
		return d.send(ctx, peer, req, step.MailSteer)
	})
	on(d.Daemon, s, ipc.Delivered, d.delivered)
	on(d.Daemon, s, ipc.Recv, d.recv)
	on(d.Daemon, s, ipc.Mailbox, d.mailbox)
}

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
	return nil
}

func (d mailer) send(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest, kind step.MailKind) (resp ipc.SendResponse, err error) {
	if err := checkSend(&req); err != nil {
		return resp, err
	}
	if err := d.settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	m := step.Mail{Kind: kind, Key: req.Key, Text: req.Text, Time: time.Now()}
	if err := d.speakFor(peer, t, &m); err != nil {
		return resp, err
	}
	if req.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(min(req.TimeoutMs, maxTimeoutMs))*time.Millisecond)
		defer cancel()
	}
	resp = ipc.SendResponse{PID: t.PID, UUID: t.UUID, State: "running"}
	if t.Live != nil {
		resp.Name = t.Live.Name
	} else {
		resp.Name = t.Info.Name
	}
	var onDisk bool
	resp.Seq, onDisk, err = d.carry(ctx, t.UUID, m, req.WaitRoom)
	switch pid, alive := d.running(t.UUID); {
	case err != nil:
		return resp, d.unsent(t, err)
	case onDisk:
		resp.State = "suspended"
	case alive:
		resp.PID = pid
		if i, ierr := d.kernel.Info(pid); ierr == nil {
			resp.State = i.StateName()
		}
	}
	return resp, nil
}

// speakFor says in whose name a client sends. One inside an agent speaks for that agent, to its relatives, and
// never for a person.
func (d mailer) speakFor(peer *ipc.Peer, t target, m *step.Mail) error {
	owner, inside := d.agentOf(peer)
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
	i, err := d.kernel.Info(owner)
	if err != nil {
		return err
	}
	m.From, m.FromUUID, m.Name = owner, i.UUID, i.Name
	if t.Live != nil && t.Live.State < types.StateZombie {
		return d.kernel.MaySend(owner, t.PID)
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
func (d mailer) unsent(t target, err error) error {
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

// carry puts a message into the mailbox of a process, or into its history if that is suspended; onDisk says
// which. A process that is just being suspended or resumed is tried again.
func (d mailer) carry(ctx context.Context, id types.UUID, m step.Mail, waitRoom bool) (seq uint64, onDisk bool, err error) {
	for end := time.Now().Add(carryTime); ; {
		if p, alive := d.kernel.ByUUID(id); alive {
			seq, err = d.kernel.Post(ctx, p.PID, m, waitRoom)
			if code := types.CodeOf(err); err == nil || code != types.ErrBrokenPipe && code != types.ErrNotFound {
				return seq, false, err
			}
			select { // it is ending, and its history will say how
			case <-p.Left():
			case <-ctx.Done():
				return 0, false, err
			}
		}
		seq, err = d.stored(ctx, id, m)
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

// stored puts a message into the history of a process that is suspended. CONFLICT: somebody else writes it
// just now. BROKEN_PIPE: it has ended.
func (d mailer) stored(ctx context.Context, id types.UUID, m step.Mail) (uint64, error) {
	a, err := reviver(d).open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer a.close()
	s := a.state
	fail := func(code types.ErrCode, err error) (uint64, error) {
		return 0, &types.SyscallError{Syscall: "Send", PID: a.was.PID, Device: id.String(), Code: code, Err: err}
	}
	switch {
	case s.Phase == recovery.Ended:
		return fail(types.ErrBrokenPipe, errors.New("the process has ended"))
	case a.was.Body != nil:
		return fail(types.ErrInvalid, errors.New("it has no model, which could read the message"))
	case s.Has(m.Key):
		return s.SeqOf(m.Key), nil
	case !kernel.MailRoom(len(s.Mail), s.MailBytes(), &m):
		return fail(types.ErrExhausted, kernel.ErrMailFull)
	}
	m.Seq = s.MailSeq + 1
	if !d.secrets.Empty() {
		m.SetBytes(d.secrets.Bytes(m.Bytes()))
	}
	rec, err := step.MailRecord(m)
	if err != nil {
		return 0, err
	}
	if err := a.rec.Add(rec); err != nil {
		return 0, err
	}
	return m.Seq, a.rec.Commit()
}

// post carries a message for the kernel.
func (d mailer) post(ctx context.Context, id types.UUID, m step.Mail) (uint64, error) {
	seq, _, err := d.carry(ctx, id, m, false)
	return seq, err
}

// maxWait is the longest time that one delivered call waits.
const maxWait = time.Minute

func (d mailer) delivered(ctx context.Context, _ *ipc.Peer, req ipc.DeliveredRequest) (resp ipc.DeliveredResponse, err error) {
	if err := d.settled(ctx); err != nil {
		return resp, err
	}
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	resp.UUID, resp.PID = t.UUID, t.PID
	if t.Live != nil && t.Live.State < types.StateZombie {
		wait, cancel := context.WithTimeout(ctx, min(time.Duration(max(req.TimeoutMs, 0))*time.Millisecond, maxWait))
		resp.Delivered, err = d.kernel.Delivered(wait, t.PID, req.Seq)
		cancel()
		if code := types.CodeOf(err); err != nil && code != types.ErrTimeout && code != types.ErrNotFound {
			return resp, err
		}
		i, ierr := d.kernel.Info(t.PID)
		if ierr == nil && (i.State < types.StateZombie || resp.Delivered) {
			if err != nil && types.CodeOf(err) == types.ErrNotFound {
				return resp, err
			}
			resp.State, resp.Step, resp.Wait = i.StateName(), i.Progress.Step, i.Wait
			return resp, nil
		}
	}
	s, _, _, err := d.store.read(ctx, t.UUID)
	if err != nil {
		return resp, err
	}
	if req.Seq == 0 || req.Seq > s.MailSeq {
		return resp, types.Errorf(types.ErrNotFound, "Delivered", req.Target, "no message %d: %d have come", req.Seq, s.MailSeq)
	}
	resp.Delivered, resp.State, resp.Step, resp.Wait = !s.Waits(req.Seq), "suspended", s.Step, s.Wait
	if t.Info != nil {
		resp.Wait = procview.Stored(t.Info).Wait
	}
	if s.Phase == recovery.Ended {
		resp.State = "dead"
	}
	return resp, nil
}

func (d mailer) recv(ctx context.Context, peer *ipc.Peer, req ipc.RecvRequest) (resp ipc.RecvResponse, err error) {
	owner, inside := d.agentOf(peer)
	if req.Target == "" {
		if !inside || owner == 0 {
			return resp, types.Errorf(types.ErrInvalid, "Recv", "", "no process was named: give a PID, a UUID or its beginning or end, or a name")
		}
		req.Target = owner.String()
	}
	t, err := processes(d).alive("Recv", req.Target)
	if err != nil {
		return resp, err
	}
	if inside && t.PID != owner {
		return resp, service.Outside("Recv", owner, "take its own messages only")
	}
	if req.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(min(req.TimeoutMs, maxTimeoutMs))*time.Millisecond)
		defer cancel()
	}
	m, err := d.kernel.RecvContext(ctx, t.PID)
	if err != nil {
		return resp, err
	}
	w := m.Mail()
	return ipc.RecvResponse{Seq: w.Seq, Kind: string(w.Kind), From: w.From, Name: w.Name, Time: w.Time, Text: w.Text, Data: w.Data}, nil
}

// Letters reads the messages of a history, as far as it is on disk, for /proc.
func (s *store) Letters(id types.UUID) ([]step.Letter, error) {
	return step.Letters(s.journal.Replay(context.Background(), id, 1))
}
