package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	rnixctx "rnix/context"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// send sends a message to a relative.
func send(ctx context.Context, ag Agent, a *loop.Action, key string) (string, error) {
	var in struct {
		PID  types.PID `json:"pid"`
		Text string    `json:"text"`
	}
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	switch {
	case in.PID == 0:
		return "", types.Errorf(types.ErrInvalid, "Send", "", "PID 0 is the user, who gets no messages but reads your result")
	case in.PID == ag.Me().PID:
		return "", types.Errorf(types.ErrInvalid, "Send", "", "PID %d is yourself", in.PID)
	case strings.TrimSpace(in.Text) == "":
		return "", types.Errorf(types.ErrInvalid, "Send", "", "the text is empty")
	}
	switch suspended, err := ag.Mail.Send(ctx, in.PID, in.Text, "call:"+key); {
	case err != nil:
		return "", err
	case suspended:
		return fmt.Sprintf("sent to PID %d, which is suspended and gets it when it is resumed", in.PID), nil
	}
	return fmt.Sprintf("sent to PID %d", in.PID), nil
}

// recvSeconds is how long recv waits if it is not said.
const recvSeconds = 60

// recv takes messages out of the mailbox, and waits for one if there is none.
func recv(ctx context.Context, ag Agent, a *loop.Action) (string, error) {
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
		changed := ag.Mail.Changed() // before it is looked at
		if n := fitting(ag.Mail.Waiting()); n > 0 {
			ls := ag.Mail.Take(a.Call.ID, n)
			for i := range ls {
				a.Attachments = append(a.Attachments, ls[i].Attachments...)
			}
			return received(ls, "")
		}
		if ag.Mail.Interrupted() {
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
			return "", ag.Ended(ctx, "Recv")
		}
	}
}

// recvMax bounds the messages in one answer of recv, in bytes of JSON: with more, the answer would be cut where the
// model could not read it any more. One message always fits.
const recvMax = 192 << 10

// fitting returns how many of the messages fit into one answer, whatever they hold: what JSON escapes takes up to
// six times its room. They show no more files together than one message may.
func fitting(ls []Letter) int {
	room, files := recvMax, rnixctx.MaxAttachments
	for i := range ls {
		b, err := json.Marshal(&ls[i])
		files -= len(ls[i].Attachments)
		if room -= len(b) + 1; err != nil || room < 0 || files < 0 {
			return max(i, 1)
		}
	}
	return len(ls)
}

// received makes the answer of recv.
func received(ls []Letter, note string) (string, error) {
	if ls == nil {
		ls = []Letter{}
	}
	b, err := json.Marshal(&struct {
		Messages []Letter `json:"messages"`
		Note     string   `json:"note,omitempty"`
	}{ls, note})
	return string(b), err
}
