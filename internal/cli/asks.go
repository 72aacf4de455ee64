package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rnix/debug"
	"rnix/internal/event"
	"rnix/ipc"
)

// mostAnswered is how many answered asks a daemon lists at most.
const mostAnswered = 1000

func asksCmd(a *app) *cobra.Command {
	var follow, grants, all bool
	var limit int
	var revoke uint64
	c := &cobra.Command{
		Use:        "asks [PROCESS]",
		SuggestFor: []string{"ask", "approvals", "permissions", "questions"},
		Short:      "show which calls and questions wait for your answer",
		Long: `Asks lists the calls of agents about which you are asked before they are made, oldest first: those that
a rule says so of (--ask, and permissions: in config.yaml and agent.yaml). The agent waits for as long as it
takes, without using up its time limits; it can be stopped and resumed meanwhile, and so can the daemon. You
answer with rnix allow and rnix deny, from anywhere. Questions that agents ask you themselves, with the tool
"ask", stand among them: answer them with rnix answer.

With -f it shows what is asked and answered from then on, too, until you press Ctrl+C. --grants
lists what was allowed for more than one call, also to a process that has ended, for which it counts when it
is resumed; --revoke N takes back what was granted with the answer to N.
--all shows what was answered, too: when, by whom and how, what else the answer allowed, and whether that was
taken back; the latest 100, or --limit, of the 1,000 processes that worked last. What is archived is left out.

Columns: N, the number by which it is answered; PID and NAME; AGE; RULE, because of which you are asked;
CALL, what would run, or a question. Below them stands all that would run, where a line does not show it, and
what belongs to a question.`,
		Example:           examples(`rnix asks`, `rnix asks -f`, `rnix asks night --json | jq .input`, `rnix asks --all night`, `rnix asks --all --json | jq -r 'select(.answer.verdict=="deny").text'`, `rnix asks --grants`, `rnix asks --revoke 3`),
		Annotations:       exits("0 1 2 10 11 12 130"),
		Args:              argsOf(0, 1, process),
		ValidArgsFunction: onlyFirst(completeProcs(a, false)),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case all && (follow || grants || c.Flags().Changed("revoke")):
				return usagef("", "--all shows what was answered; -f, --grants and --revoke are for something else")
			case limit > mostAnswered:
				return usagef("", "--limit is %d at most", mostAnswered)
			case limit < 0 || c.Flags().Changed("limit") && !all:
				return usagef("", "--limit is a number of at least 0, and goes with --all")
			}
			req := ipc.AsksRequest{Grants: grants, All: all, Limit: limit}
			if len(args) > 0 {
				req.Target = args[0]
			}
			ctx := c.Context()
			fl, err := connectFollower(ctx, a)
			if err != nil {
				return err
			}
			if c.Flags().Changed("revoke") {
				return revokeGrant(ctx, fl.client, a.out, revoke)
			}
			r, err := ipc.Call(ctx, fl.client, ipc.ListAsks, req)
			if err != nil {
				return err
			}
			if all {
				showPast(a.out, r.Asks, time.Now())
				return nil
			}
			if grants {
				showGrants(a.out, r.Grants, time.Now())
				return nil
			}
			if !follow {
				showAsks(a.out, r.Asks, time.Now())
				return nil
			}
			return followAsks(ctx, a.out, fl, req, r.Asks)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "show what is asked and answered from now on, too")
	c.Flags().BoolVar(&all, "all", false, "what was answered, too: by whom, when and how")
	c.Flags().IntVar(&limit, "limit", 0, "with --all: only so many that were answered, the latest; 0 = 100")
	c.Flags().BoolVar(&grants, "grants", false, "what was allowed for more than one call")
	c.Flags().Uint64Var(&revoke, "revoke", 0, "take back what was granted with the answer to ask `N`")
	_ = c.RegisterFlagCompletionFunc("revoke", completeGrants(a))
	return c
}

// showAsks lists what waits for an answer.
func showAsks(out *output, asks []ipc.Ask, now time.Time) {
	if out.json() {
		for i := range asks {
			out.object(&asks[i])
		}
		return
	}
	if len(asks) == 0 {
		out.talk("nothing is asked")
		return
	}
	rows := make([][]cell, len(asks))
	for i := range asks {
		k := &asks[i]
		age := "-"
		switch {
		case k.Suspended:
			age = suspended
		case !k.Since.IsZero():
			age = debug.Age(now.Sub(k.Since))
		}
		rows[i] = []cell{text(strconv.FormatUint(k.Number, 10)), text(k.PID.String()), text(oneLine(k.Name)), text(age), text(oneLine(ruleOf(k))), text(oneLine(k.Text))}
	}
	out.table([]column{{name: "N", right: true}, {name: "PID", right: true}, {name: "NAME", max: 20, drop: 1}, {name: "AGE", right: true, drop: 2}, {name: "RULE", max: 24, drop: 3}, {name: "CALL"}}, rows)
	for i := range asks {
		out.print(out.drawn(wholeCall(&asks[i], out.out.width)))
	}
	out.talk("%s", howToAnswer(asks))
}

// showGrants lists what was granted.
func showGrants(out *output, list []ipc.Grant, now time.Time) {
	if out.json() {
		for i := range list {
			out.object(&list[i])
		}
		return
	}
	if len(list) == 0 {
		out.talk("nothing is granted")
		return
	}
	rows := make([][]cell, len(list))
	ended := false
	for i := range list {
		g := &list[i]
		scope := string(g.Scope)
		if g.Ended {
			scope, ended = scope+" (ended)", true
		}
		left := "-"
		if !g.Until.IsZero() {
			if left = debug.Age(g.Until.Sub(now)); !now.Before(g.Until) {
				left = "over"
			}
		}
		rows[i] = []cell{text(strconv.FormatUint(g.Number, 10)), text(g.PID.String()), text(oneLine(g.Name)), text(scope), text(left), text(oneLine(g.Text))}
	}
	out.table([]column{{name: "N", right: true}, {name: "PID", right: true}, {name: "NAME", max: 20, drop: 1}, {name: "FOR"}, {name: "LEFT", right: true}, {name: "WHAT"}}, rows)
	if ended {
		out.talk("what a process that has ended was granted counts when it is resumed")
	}
}

func revokeGrant(ctx context.Context, c *ipc.Client, out *output, n uint64) error {
	r, err := ipc.Call(ctx, c, ipc.RevokeGrant, ipc.RevokeRequest{Number: n})
	if err != nil {
		return err
	}
	if out.json() {
		out.object(&r)
		return nil
	}
	out.talk("[kernel] %s is asked about again, for the %s of PID %d", oneLine(r.Grant.Text), r.Grant.Scope, r.Grant.PID)
	return nil
}

// answered is what is shown of an answer while asks are followed.
type answered struct {
	Number  uint64 `json:"number"`
	Answer  string `json:"answer"` // allow, edit, deny, answer, default or withdrawn
	Because string `json:"because,omitempty"`
}

// followAsks shows what is asked, and what becomes of it.
func followAsks(ctx context.Context, out *output, fl *follower, req ipc.AsksRequest, first []ipc.Ask) error {
	shown := map[uint64]bool{}
	show := func(list []ipc.Ask) {
		for i := range list {
			k := &list[i]
			if shown[k.Number] {
				continue
			}
			shown[k.Number] = true
			if out.json() {
				out.object(k)
				continue
			}
			out.print(askLine(k) + "\n" + wholeCall(k, 0))
		}
	}
	show(first)
	out.talk("shows what is asked until you press Ctrl+C; answer elsewhere with: rnix allow N, rnix deny N, or rnix answer N TEXT")
	events := ipc.EventsRequest{Target: req.Target, Follow: true, Kinds: []event.Kind{event.Asked, event.Answered}}
	var failed error
	err := eachEvent(ctx, fl, out, events, &misses{}, func(f *ipc.Frame[ipc.Event]) {
		e := &f.Data
		if e.Kind == event.Asked {
			r, err := ipc.Call(ctx, fl.client, ipc.ListAsks, req)
			if err != nil {
				failed = err
				return
			}
			show(r.Asks)
			return
		}
		n, _ := strconv.ParseUint(e.Args, 10, 64)
		if out.json() {
			out.object(answered{n, e.Result, e.Text})
			return
		}
		out.print(fmt.Sprintf("%d  PID %d  %s\n", n, e.PID, strings.TrimSuffix(answerWords(e.Result)+": "+oneLine(e.Text), ": ")))
	}, func(missed) {})
	if err == nil {
		err = failed
	}
	return err
}

// askLine says what is asked in a line.
func askLine(k *ipc.Ask) string {
	who := "PID " + k.PID.String()
	if k.Name != "" {
		who += " " + oneLine(k.Name)
	}
	return fmt.Sprintf("%d  %s  %s  (%s)", k.Number, who, oneLine(k.Text), oneLine(ruleOf(k)))
}

func answerWords(verdict string) string {
	switch verdict {
	case "allow":
		return "allowed"
	case "edit":
		return "allowed, with a change"
	case "answer":
		return "answered"
	case "default":
		return "answered by its default"
	case "withdrawn":
		return "not waited for any more"
	}
	return "refused"
}
