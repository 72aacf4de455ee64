package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// sendTo sends a message to a relative. key names the call, so that a message which is sent again after a crash
// comes once.
func (at *agentActions) sendTo(ctx context.Context, p *Process, a *loop.Action, key string) (string, error) {
	var in struct {
		PID  types.PID `json:"pid"`
		Text string    `json:"text"`
	}
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	if err := maySend(p); err != nil {
		return "", err
	}
	switch {
	case in.PID == 0:
		return "", types.Errorf(types.ErrInvalid, "Send", "", "PID 0 is the user, who gets no messages but reads your result")
	case in.PID == p.PID:
		return "", types.Errorf(types.ErrInvalid, "Send", "", "PID %d is yourself", in.PID)
	case strings.TrimSpace(in.Text) == "":
		return "", types.Errorf(types.ErrInvalid, "Send", "", "the text is empty")
	case len(in.Text) > MaxMessage:
		return "", tooLarge(in.PID, len(in.Text))
	}
	m := step.Mail{Kind: step.MailMessage, From: p.PID, FromUUID: p.UUID, Name: p.Name(), Time: time.Now(), Text: in.Text, Key: "call:" + key}
	t, alive := at.table.get(in.PID)
	if alive {
		if err := at.mail.related(p, t); err != nil {
			return "", err
		}
		if t.opts.Body != nil {
			return "", &types.SyscallError{Syscall: "Send", PID: in.PID, Code: types.ErrInvalid, Err: errNoAgent}
		}
		if _, err := at.mail.post(ctx, t, m, false); err == nil {
			return fmt.Sprintf("sent to PID %d", in.PID), nil
		} else if types.CodeOf(err) != types.ErrBrokenPipe {
			return "", err
		}
	}
	id, ok := at.children.relative(p, in.PID)
	if !ok {
		if alive {
			return "", sendEnded(in.PID)
		}
		return "", &types.SyscallError{Syscall: "Send", PID: in.PID, Code: types.ErrNotFound, Err: fmt.Errorf("%w of your family; ps lists those below you", ErrNoProcess)}
	}
	if _, err := at.lifecycle.Post(ctx, id, m); types.CodeOf(err) == types.ErrBrokenPipe {
		return "", sendEnded(in.PID)
	} else if err != nil {
		return "", err
	}
	return fmt.Sprintf("sent to PID %d, which is suspended and gets it when it is resumed", in.PID), nil
}

func sendEnded(pid types.PID) error {
	return &types.SyscallError{Syscall: "Send", PID: pid, Code: types.ErrBrokenPipe, Err: errors.New("it has ended")}
}

// recvSeconds is how long recv waits if it is not said.
const recvSeconds = 60

// recvMail takes messages out of the mailbox, and waits for one if there is none.
func (at *agentActions) recvMail(ctx context.Context, p *Process, a *loop.Action) (string, error) {
	in := struct {
		TimeoutS float64 `json:"timeout_s"`
	}{recvSeconds}
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	late, stop, err := alarm("recv", in.TimeoutS)
	if err != nil {
		return "", err
	}
	defer stop()
	for {
		changed := p.box.Changed() // before it is looked at
		if ms := takePortion(p); len(ms) > 0 {
			p.kids.took(a.Call.ID, numbers(ms))
			return received(ms, "")
		}
		if p.box.Has(isSteer) {
			return received(nil, "the user has said something, which you get now")
		}
		if in.TimeoutS == 0 { // it was only to look
			return received(nil, "no message has come")
		}
		select {
		case <-changed:
		case <-late:
			return received(nil, "no message has come")
		case <-ctx.Done():
			if errors.Is(context.Cause(p.ctx), errStopping) {
				return "", at.stopping(p)
			}
			return "", types.Errorf(types.ErrCancelled, "Recv", "", "%w", context.Cause(ctx))
		}
	}
}

// takePortion takes as many messages as a model gets at once, the oldest first; none that a person has said.
func takePortion(p *Process) []*Message {
	var waiting []*Message
	p.box.Has(func(m *Message) bool {
		if !isSteer(m) {
			waiting = append(waiting, m)
		}
		return false
	})
	n := recvPortion(waiting[:portion(waiting)])
	ms := p.box.Take(func(m *Message) bool {
		if isSteer(m) || n == 0 {
			return false
		}
		n--
		return true
	})
	p.post.took(ms...)
	return ms
}

// recvMax bounds the messages in one answer of recv, in bytes of JSON: with more, the answer would be cut where the
// model could not read it any more. One message always fits.
const recvMax = 192 << 10

// recvPortion returns how many of the messages fit into one answer, whatever they hold: what JSON escapes takes up to
// six times its room.
func recvPortion(ms []*Message) int {
	room := recvMax
	for i, m := range ms {
		b, err := json.Marshal(receivedOf(m))
		if room -= len(b) + 1; err != nil || room < 0 {
			return max(i, min(len(ms), 1))
		}
	}
	return len(ms)
}

// receivedMessage is a message in the answer of recv.
type receivedMessage struct {
	Seq  uint64    `json:"seq"`
	From types.PID `json:"from"`
	Name string    `json:"name,omitempty"`
	Text string    `json:"text"`
}

func receivedOf(m *Message) receivedMessage {
	mail := m.Mail()
	return receivedMessage{m.Seq, m.From, mail.Name, bounded(m)}
}

// received makes the answer of recv.
func received(ms []*Message, note string) (string, error) {
	var answer struct {
		Messages []receivedMessage `json:"messages"`
		Note     string            `json:"note,omitempty"`
	}
	answer.Messages, answer.Note = []receivedMessage{}, note
	for _, m := range ms {
		answer.Messages = append(answer.Messages, receivedOf(m))
	}
	b, err := json.Marshal(&answer)
	return string(b), err
}

// signalChild sends a signal to a descendant.
func (at *agentActions) signalChild(p *Process, a *loop.Action) (string, error) {
	var in struct {
		PID    types.PID `json:"pid"`
		Signal string    `json:"signal"`
		Tree   bool      `json:"tree"`
	}
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	if err := permitted(p, "Signal", signalRight, "send signals"); err != nil {
		return "", err
	}
	sig, err := types.ParseSignal(in.Signal)
	if err != nil {
		return "", err
	}
	below, err := at.sys.Subtree(p.PID)
	if err != nil {
		return "", err
	}
	if in.PID == p.PID || !slices.Contains(below, in.PID) {
		code, why := types.ErrPermission, errors.New("it is not below you; ps lists those that are")
		if c, ok := at.children.childOf(p, p.kids.all(), in.PID); ok {
			code, why = types.ErrNotFound, errors.New("it has ended")
			if i, _, known := at.children.fate(c); known && i.Parked.Waits() {
				why = errors.New("it is suspended, and does nothing: " + i.Parked.SuspendReason)
			}
		}
		return "", &types.SyscallError{Syscall: "Signal", PID: in.PID, Code: code, Err: why}
	}
	n := 1
	if in.Tree {
		n, err = at.signals.tree(authority{p: p}, in.PID, sig)
	} else {
		err = at.signals.send(authority{p: p}, in.PID, sig)
	}
	if err != nil {
		return "", err
	}
	if n == 0 {
		return fmt.Sprintf("PID %d has ended already", in.PID), nil
	}
	return fmt.Sprintf("%s sent to PID %d, %d reached", sig, in.PID, n), nil
}

// listChildren lists a process and its descendants, and its children that are suspended.
func (at *agentActions) listChildren(p *Process) (string, error) {
	type line struct {
		PID    types.PID `json:"pid"`
		PPID   types.PID `json:"ppid,omitempty"`
		Name   string    `json:"name,omitempty"`
		State  string    `json:"state"`
		Step   int       `json:"step"`
		Tokens int       `json:"tokens"`
		Waits  string    `json:"waits_for,omitempty"`
		Intent string    `json:"intent"`
	}
	below, err := at.sys.Subtree(p.PID)
	if err != nil {
		return "", err
	}
	seen := map[types.UUID]bool{}
	out := []line{}
	add := func(i *Info) {
		seen[i.UUID] = true
		first, _, _ := strings.Cut(strings.TrimSpace(i.Intent), "\n")
		out = append(out, line{i.PID, i.PPID, i.Name, i.StateName(), i.Step, i.TokensUsed, orDefault(i.Wait, i.Parked.SuspendReason), excerpt([]byte(first))})
	}
	for _, pid := range below {
		if i, ok := at.table.known(pid); ok {
			add(&i)
		}
	}
	for _, c := range p.kids.all() {
		if i, _, ok := at.children.fate(c); ok && !seen[c.id] && i.Suspended {
			i.PPID = p.PID
			add(&i)
		}
	}
	b, err := json.Marshal(out)
	return string(b), err
}
