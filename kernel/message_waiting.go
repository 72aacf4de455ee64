package kernel

import (
	"rnix/internal/step"
	"rnix/types"
)

// Waiting is a message that waits in a mailbox: what is known of it, without what it says.
type Waiting struct {
	step.Mail        // Text and Data are empty
	Size      int    // of what it says, in bytes
	Head      []byte // how that begins; must not be changed
}

// waitingHead is how much of a message Waiting has, in bytes.
const waitingHead = 1 << 10

// Waiting returns what waits in the mailbox of a process, oldest first, and the number of the last message that has come. It takes
// nothing out.
func (k *KernelImpl) Waiting(pid types.PID) (list []Waiting, last uint64, err error) {
	p, err := k.table.lookup("Mailbox", pid)
	if err != nil {
		return nil, 0, err
	}
	p.box.Has(func(m *Message) bool {
		w := Waiting{Mail: step.Mail{Seq: m.Seq, Kind: step.MailMessage, From: m.From}}
		if m.mail != nil {
			w.Mail = *m.mail
		}
		w.Text, w.Data, w.Size, w.Head = "", nil, len(m.Data), m.Data[:min(len(m.Data), waitingHead)]
		list = append(list, w)
		return false
	})
	return list, p.post.seq.Load(), nil
}
