package step

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

// asks is the answer of a model with calls of these ids.
func asks(ids ...string) Record {
	m := &rnixctx.Message{Role: rnixctx.RoleAssistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, rnixctx.ToolCall{ID: id, Name: "t_" + id})
	}
	return Record{Kind: KindMessage, Message: m}
}

func begins(n int, id, effect string, change ...func(*Intent)) Record {
	in := &Intent{Step: n, CallID: id, Tool: "t_" + id, Path: "/dev/x", Effect: effect, Key: "k"}
	for _, f := range change {
		f(in)
	}
	return Record{Kind: KindIntent, Intent: in}
}

func ends(n int, id, err string, code types.ErrCode) Record {
	return Record{Kind: KindResult, Result: &Result{Step: n, CallID: id, Tool: "t_" + id, Error: err, Code: code, Duration: time.Second}}
}

func says(id, text string, isErr bool) Record {
	return Record{Kind: KindMessage, Message: &rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: text, IsError: isErr}}
}

func marks(name string) Record { return Record{Kind: KindMarker, Marker: &Marker{Name: name}} }

func closes(n int, calls ...Call) Record {
	return Record{Kind: KindStep, Step: &StepRecord{StepNumber: n, ToolCalls: calls}}
}

func historyOf(recs ...Record) *History {
	h := &History{}
	for i, r := range recs {
		r.Seq, r.Time = uint64(i+1), time.Unix(int64(i+1), 0)
		h.Records = append(h.Records, r)
	}
	return h
}

func TestLedgerSaysWhatBecameOfEachCall(t *testing.T) {
	child := types.UUID{1}
	spawn := func(in *Intent) { in.Child = &child }
	kept := func(in *Intent) { in.Before = &Snapshot{ID: "s"} }
	spawned, resumed := marks(MarkerSpawn), marks(MarkerResumed)
	for name, c := range map[string]struct {
		recs []Record
		want string // id, attempt, run and verdict of each entry
	}{
		"done":             {[]Record{spawned, asks("a"), begins(1, "a", "none"), ends(1, "a", "", ""), says("a", "x", false)}, "a 1 1 done"},
		"failed":           {[]Record{spawned, asks("a"), begins(1, "a", "none"), ends(1, "a", "no", types.ErrDriver), says("a", "no", true)}, "a 1 1 failed"},
		"not begun":        {[]Record{spawned, asks("a", "b"), begins(1, "a", "none")}, "a 1 1 in doubt, b 0 1 not begun"},
		"refused":          {[]Record{spawned, asks("a"), says("a", "no such tool", true)}, "a 0 1 not begun"},
		"the kernel's":     {[]Record{spawned, asks("a"), says("a", "planned", false)}, "a 0 1 done"},
		"run again":        {[]Record{spawned, asks("a"), begins(1, "a", "none"), resumed, begins(1, "a", "none"), ends(1, "a", "", "")}, "a 1 1 run again, a 2 2 done"},
		"twice":            {[]Record{spawned, asks("a"), begins(1, "a", "none"), resumed, begins(1, "a", "none"), resumed, begins(1, "a", "none"), ends(1, "a", "x", "")}, "a 1 1 run again, a 2 2 run again, a 3 3 failed"},
		"undone":           {[]Record{spawned, asks("a"), begins(1, "a", "reversible", kept), resumed, begins(1, "a", "reversible", kept)}, "a 1 1 undone and run again, a 2 2 in doubt"},
		"not to be undone": {[]Record{spawned, asks("a"), begins(1, "a", "reversible"), resumed, begins(1, "a", "reversible")}, "a 1 1 run again, a 2 2 in doubt"},
		"attached":         {[]Record{spawned, asks("a"), begins(1, "a", "external", spawn), resumed, begins(1, "a", "external", spawn), ends(1, "a", "", "")}, "a 1 1 attached, a 2 2 done"},
		"done, and again":  {[]Record{spawned, asks("a"), begins(1, "a", "none"), ends(1, "a", "", ""), resumed, begins(1, "a", "none")}, "a 1 1 done, a 2 2 in doubt"},
		"told":             {[]Record{spawned, asks("a"), begins(1, "a", "external"), resumed, ends(1, "a", "who knows", types.ErrInDoubt), says("a", "who knows", true)}, "a 1 1 told unknown"},
		"told, unrecorded": {[]Record{spawned, asks("a"), begins(1, "a", "external"), resumed, says("a", "who knows", true)}, "a 1 1 told unknown"},
		"skipped":          {[]Record{spawned, asks("a"), begins(1, "a", "external"), resumed, ends(1, "a", "Tool t_a: "+SkippedText, types.ErrInDoubt), says("a", "-", true)}, "a 1 1 skipped"},
		"answer was lost":  {[]Record{spawned, asks("a"), begins(1, "a", "external"), ends(1, "a", "", ""), resumed, says("a", "it has run", false)}, "a 1 1 done"},
		"ids come again":   {[]Record{spawned, asks("a"), begins(1, "a", "none"), ends(1, "a", "", ""), says("a", "", false), closes(1), asks("a"), begins(2, "a", "none"), ends(2, "a", "", "")}, "a 1 1 done, a 1 1 done"},
		"without a call":   {[]Record{spawned, begins(1, "a", "none"), ends(1, "b", "", "")}, "a 1 1 in doubt, b 0 1 done"},
		"ended twice":      {[]Record{spawned, asks("a"), begins(1, "a", "none"), ends(1, "a", "", ""), ends(1, "a", "x", "")}, "a 1 1 done, a 0 1 failed"},
	} {
		var got []string
		for _, e := range historyOf(c.recs...).Ledger() {
			got = append(got, strings.Join([]string{e.CallID, types.PID(e.Attempt).String(), types.PID(e.Run).String(), string(e.Verdict)}, " "))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, s, c.want)
		}
	}
}

func TestOnlyWhatTheLastRunHasBegunIsRunning(t *testing.T) {
	h := historyOf(marks(MarkerSpawn), asks("a", "b", "c"), begins(1, "a", "external"), marks(MarkerResumed), begins(1, "b", "none"))
	var got []LedgerVerdict
	for _, e := range h.LiveLedger() {
		got = append(got, e.Verdict)
	}
	if want := []LedgerVerdict{LedgerInDoubt, LedgerRunning, LedgerNotBegun}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if e := h.Ledger()[1]; e.Verdict != LedgerInDoubt {
		t.Errorf("of a process that does not live, %s", e.Verdict)
	}
}

func TestAnEntryHasWhatTheRecordsSay(t *testing.T) {
	child := types.UUID{7}
	long := strings.Repeat("ü", 300)
	h := historyOf(marks(MarkerSpawn), asks("a", "p"), begins(4, "a", "external", func(in *Intent) { in.Child = &child }),
		ends(4, "a", "boom\nsecond line", types.ErrDriver), says("a", "error", true), says("p", "\n first "+long+"\nsecond", false),
		closes(4, Call{ID: "a", Name: "t_a"}, Call{ID: "p", Name: "t_p", Path: "/own", Duration: time.Minute}))
	l := h.Ledger()
	a, p := l[0], l[1]
	if a.Step != 4 || a.Tool != "t_a" || a.Path != "/dev/x" || a.Effect != "external" || a.Key != "k" || *a.Child != child ||
		!a.Began.Equal(time.Unix(3, 0)) || !a.Ended.Equal(time.Unix(4, 0)) || a.Took != time.Second || a.Error != "boom" || a.Code != types.ErrDriver {
		t.Errorf("got %+v", a)
	}
	if p.Path != "/own" || p.Took != time.Minute || !strings.HasPrefix(p.Result, "first ü") || len(p.Result) > ledgerText+len("…") || !strings.HasSuffix(p.Result, "ü…") {
		t.Errorf("got %+v", p)
	}
	b, err := json.Marshal(p)
	must(t, err)
	if s := string(b); strings.Contains(s, "began") || strings.Contains(s, "child") || !strings.Contains(s, `"verdict":"done"`) {
		t.Errorf("as JSON: %s", s)
	}
}
