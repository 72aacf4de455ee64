package mail

import (
	"context"
	"unicode/utf8"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// mailbox shows what waits in a mailbox: of a process that runs, what it has in memory, which is more than its record may say; else what its
// record says.
func (d *Service) mailbox(ctx context.Context, peer *ipc.Peer, req ipc.MailboxRequest) (resp ipc.MailboxResponse, err error) {
	if req.Limit < 0 || req.Limit > ipc.MaxLetters {
		return resp, types.Errorf(types.ErrInvalid, "Mailbox", req.Target, "limit is %d, and may be 0 to %d", req.Limit, ipc.MaxLetters)
	}
	if req.Limit == 0 {
		req.Limit = ipc.MaxLetters
	}
	owner, inside := d.Finder.AgentOf(peer)
	if req.Target == "" {
		if !inside || owner == 0 {
			return resp, types.Errorf(types.ErrInvalid, "Mailbox", "", "no process was named: give a PID, a UUID or its beginning or end, or a name")
		}
		req.Target = owner.String()
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	if inside && (owner == 0 || t.PID != owner) {
		return resp, service.Outside("Mailbox", owner, "look into its own mailbox only")
	}
	var list []kernel.Waiting
	live := t.Live != nil && t.Live.State < types.StateZombie
	if live {
		list, resp.LastSeq, err = d.Kernel.Waiting(t.PID)
		live = types.CodeOf(err) != types.ErrNotFound // it has just gone
	}
	if !live {
		list, resp.LastSeq, err = d.storedMail(ctx, t.UUID)
	}
	if err != nil {
		return ipc.MailboxResponse{}, err
	}
	resp.PID, resp.UUID, resp.Total, resp.Letters = t.PID, t.UUID, len(list), []ipc.Letter{}
	for i := range list {
		resp.Bytes += list[i].Size
		if i < req.Limit {
			resp.Letters = append(resp.Letters, d.wireLetter(&list[i]))
		}
	}
	return resp, nil
}

// storedMail is Waiting of a process that does not run.
func (d *Service) storedMail(ctx context.Context, id types.UUID) (list []kernel.Waiting, last uint64, err error) {
	s, err := d.Stored.Read(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	for _, m := range s.Mail {
		w := kernel.Waiting{Mail: m, Head: m.Bytes()}
		w.Text, w.Data, w.Size = "", nil, len(w.Head)
		list = append(list, w)
	}
	return list, s.MailSeq, nil
}

// lineLength is how much of the first line of a message is shown, in characters.
const lineLength = 200

func (d *Service) wireLetter(w *kernel.Waiting) ipc.Letter {
	l := ipc.Letter{Seq: w.Seq, Kind: string(w.Kind), From: w.From, FromUUID: w.FromUUID, Name: w.Name, Time: w.Time, Bytes: w.Size}
	for _, a := range w.Attachments {
		l.Attachments = append(l.Attachments, ipc.Attached(a))
	}
	if l.Kind == "" {
		l.Kind = string(step.MailMessage)
	}
	head := w.Head
	if !d.Secrets.Empty() {
		head = d.Secrets.Bytes(head)
	}
	if len(head) < w.Size { // it may end within a character
		for n := 0; n < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); n++ {
			head = head[:len(head)-1]
		}
	}
	if l.Binary = !utf8.Valid(head); !l.Binary {
		l.Line = service.FirstLine(string(head), lineLength)
	}
	return l
}
