package recoverytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// Picture returns the bytes of what goes along with messages. They are not written: whoever looks for the file does that, with step.WriteAttachment.
func Picture() []byte { return []byte("the bytes of a picture") }

// shown is what goes along with what a person says, sometimes.
func (t *teller) shown() []rnixctx.Attachment {
	if t.chance(50) {
		return nil
	}
	sum := sha256.Sum256(Picture())
	return []rnixctx.Attachment{{Name: t.text(1), Media: "image/png", SHA256: hex.EncodeToString(sum[:]), Bytes: int64(len(Picture())), Width: 1, Height: 1}}
}

// letters writes messages that come, and the delivery of some of those that wait.
func (t *teller) letters() {
	for t.odd(20) {
		t.mailSeq++
		m := step.Mail{Seq: t.mailSeq, Kind: step.MailMessage, From: types.PID(t.r.IntN(9)), Name: t.text(1), Text: t.text(9), Time: time.Now().UTC().Round(0)}
		switch t.r.IntN(4) {
		case 0:
			m.Kind, m.Attachments = step.MailSteer, t.shown()
		case 1:
			m.Kind, m.Key, m.Child = step.MailChild, fmt.Sprint("ended:", t.mailSeq), types.NewUUID()
			if t.chance(50) {
				m.Failed = "PID 7 ended with exit code 1"
			}
		}
		rec, err := step.MailRecord(m)
		if err != nil && t.err == nil {
			t.err = err
		}
		t.marker(*rec.Marker)
		t.commit()
		t.mail = append(t.mail, m.Seq)
	}
	if len(t.mail) == 0 || t.chance(40) {
		return
	}
	n := 1 + t.r.IntN(len(t.mail))
	seqs := t.mail[:n:n]
	t.mail = t.mail[n:]
	if t.chance(20) {
		t.marker(*step.TakenRecord(seqs...).Marker)
		return
	}
	m := rnixctx.Message{Role: rnixctx.RoleUser, Content: "[MESSAGES] " + t.text(20)}
	t.ms = append(t.ms, m)
	t.add(step.Record{Kind: step.KindMessage, Message: &m, Delivered: seqs}, func() error { return t.w.Deliver(&m, seqs) })
}
