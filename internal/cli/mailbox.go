package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	rnixctx "rnix/context"
	"rnix/debug"
	"rnix/ipc"
)

func mailboxCmd(a *app) *cobra.Command {
	var limit int
	c := &cobra.Command{
		Use:        "mailbox [PROCESS]",
		SuggestFor: []string{"inbox", "mail", "messages"},
		Short:      "show which messages wait for an agent",
		Long: `Mailbox lists the messages that an agent has been sent and has not got yet, oldest first, and takes none
out: they stay for the agent, or for rnix recv. An agent that is suspended or has ended keeps its mailbox.
Inside an agent, without a process, the mailbox is the agent's own; into that of others it cannot look.

Columns: SEQ, the number of the message among those to this process; FROM; KIND, which is message, steer
(what a person says) or child (word of a child's end); AGE; SIZE; TEXT, the first line.`,
		Example:           examples(`rnix mailbox 3`, `rnix mailbox night --limit 5`, `rnix mailbox 3 --json | jq .line`),
		Annotations:       exits("0 1 2 10 11 12"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, true)),
		RunE: func(c *cobra.Command, args []string) error {
			if limit < 0 || limit > ipc.MaxLetters {
				return usagef("", "--limit is %d, and may be 0 to %d", limit, ipc.MaxLetters)
			}
			req := ipc.MailboxRequest{Limit: limit}
			if len(args) > 0 {
				req.Target = args[0]
			}
			client, err := a.connect(c.Context())
			if err != nil {
				return err
			}
			r, err := ipc.Call(c.Context(), client, ipc.Mailbox, req)
			if err != nil {
				return err
			}
			showMailbox(a.out, &r, time.Now())
			return nil
		},
	}
	c.Flags().IntVarP(&limit, "limit", "n", 0, "only the oldest so many")
	return c
}

// showMailbox lists what waits in a mailbox.
func showMailbox(out *output, r *ipc.MailboxResponse, now time.Time) {
	if out.json() {
		for i := range r.Letters {
			out.object(&r.Letters[i])
		}
		return
	}
	if r.Total == 0 {
		came := "none has come"
		if r.LastSeq > 0 {
			came = "it has got all " + number(int(r.LastSeq)) + " that have come"
		}
		out.talk("no message waits for PID %d; %s", r.PID, came)
		return
	}
	var rows [][]cell
	for i := range r.Letters {
		l := &r.Letters[i]
		age := "-"
		if !l.Time.IsZero() {
			age = debug.Age(now.Sub(l.Time))
		}
		rows = append(rows, []cell{text(strconv.FormatUint(l.Seq, 10)), text(letterFrom(l)), text(oneLine(l.Kind)), text(age), text(size(int64(l.Bytes))), text(letterLine(l))})
	}
	out.table([]column{{name: "SEQ", right: true}, {name: "FROM", max: 24}, {name: "KIND"}, {name: "AGE", right: true}, {name: "SIZE", right: true, drop: 1}, {name: "TEXT"}}, rows)
	if more := r.Total - len(r.Letters); more > 0 {
		out.talk("%s not shown", plural(more, "newer one is", "newer ones are"))
	}
}

// letterFrom says who has sent a message.
func letterFrom(l *ipc.Letter) string {
	switch {
	case l.From > 0 && l.Name != "":
		return fmt.Sprintf("%d %s", l.From, oneLine(l.Name))
	case l.From > 0:
		return l.From.String()
	case l.Kind == "child":
		return "the kernel"
	}
	return "the user"
}

func letterLine(l *ipc.Letter) string {
	if l.Binary {
		return "(no text)"
	}
	line := l.Line
	for i := range l.Attachments {
		a := rnixctx.Attachment(l.Attachments[i])
		if label := a.Label(); !strings.Contains(line, label) {
			line += " " + label
		}
	}
	return oneLine(line)
}
