package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// collecting makes the fake daemon one that has so many histories to collect.
func (f *fake) collecting(n int) *fake {
	f.more = func(s *ipc.Server) {
		answer(s, ipc.GC, func(_ context.Context, r ipc.GCRequest) (ipc.GCResponse, error) {
			f.note(fmt.Sprintf("gc dry=%t delete=%t", r.DryRun, r.Delete))
			resp := ipc.GCResponse{Mode: "archive", DryRun: r.DryRun, Examined: n + 3, Kept: 1, RetentionDays: 30, MaxEntries: 500, ArchiveDir: "/d/archive", ConfirmAbove: 100,
				Candidates: []ipc.GCCandidate{}, Archived: []ipc.GCDone{}, Deleted: []ipc.GCDone{}, Warnings: []string{"/d/steps/x/proc-info.json: dead_at is missing"},
				Exempt: []ipc.GCExempt{{HistoryRef: ipc.HistoryRef{UUID: id(100), PID: 100}, Reason: "it is running"}, {Reason: "it is suspended"}, {Reason: "it is running"}}}
			if r.Delete {
				resp.Mode = "delete"
			}
			for i := range n {
				c := ipc.GCCandidate{HistoryRef: ipc.HistoryRef{UUID: id(byte(i)), PID: types.PID(i + 1), Name: "n\x1b[31m", DeadAt: time.Now().Add(-60 * 24 * time.Hour)}, Bytes: 2048, Why: "ended 60 days ago"}
				resp.Candidates = append(resp.Candidates, c)
				switch {
				case r.DryRun:
				case r.Delete:
					resp.Deleted = append(resp.Deleted, ipc.GCDone{GCCandidate: c})
				default:
					resp.Archived = append(resp.Archived, ipc.GCDone{GCCandidate: c, ArchiveBytes: 1024})
				}
			}
			if !r.DryRun {
				resp.Freed = int64(n) * 1024
			}
			return resp, nil
		})
		answer(s, ipc.StorageProgress, func(context.Context, ipc.Empty) (ipc.ProgressResponse, error) {
			return ipc.ProgressResponse{Works: []ipc.Work{}}, nil
		})
	}
	return f.serve()
}

func TestGCAsksWhereManyGoAndOnlyThere(t *testing.T) {
	const looked, done = "gc dry=true delete=false", "gc dry=false delete=false"
	for _, c := range []struct {
		n     int
		args  []string
		code  int
		calls string
		err   string
	}{
		{100, []string{"gc"}, 0, looked + "; " + done, "archived: 100 histories, 100.0K freed; 1 is within the limits (30 days, 500 histories)"},
		{101, []string{"gc"}, ExitUsage, looked, "rnix gc --force"},
		{101, []string{"gc", "--force"}, 0, done, "the archives are in /d/archive"},
		{101, []string{"gc", "--json"}, 0, done, ""},
		{101, []string{"gc", "--dry-run"}, 0, looked, "101 histories (202.0K) would be archived"},
		{1, []string{"gc", "--delete"}, 0, "gc dry=true delete=true; gc dry=false delete=true", "deleted for good: 1 history"},
		{0, []string{"gc"}, 0, looked + "; " + done, "nothing went"},
	} {
		f := newFake(t).collecting(c.n)
		r := f.run(c.args...)
		if r.code != c.code || f.calls() != c.calls || !strings.Contains(r.err, c.err) || strings.Contains(r.out+r.err, "\x1b") {
			t.Errorf("%d, %v: code %d, calls %s, said %s", c.n, c.args, r.code, f.calls(), r.err)
		}
		if rows := strings.Count(r.out, "\n"); c.args[len(c.args)-1] != "--json" && c.code == 0 && c.n > 0 && rows != c.n+1 {
			t.Errorf("%d, %v: %d lines", c.n, c.args, rows)
		}
		var got ipc.GCResponse
		if c.args[len(c.args)-1] == "--json" && (json.Unmarshal([]byte(r.out), &got) != nil || len(got.Archived) != c.n || r.err != "") {
			t.Errorf("%d, %v: %s", c.n, c.args, r.err)
		}
		if c.err != "" && c.code == 0 && (!strings.Contains(r.err, "3 histories are exempt: it is running (2); it is suspended") || !strings.Contains(r.err, "dead_at is missing")) {
			t.Errorf("%d, %v: %s", c.n, c.args, r.err)
		}
	}
}

func TestGCGoesOnOnlyAfterAYes(t *testing.T) {
	for typed, want := range map[string]struct {
		code  int
		calls int
	}{"y\n": {0, 2}, "\n": {ExitError, 1}, "no\n": {ExitError, 1}, "\x04": {ExitError, 1}} {
		f := newFake(t).collecting(150)
		asked := false
		code, _, err := f.onTerminal(func(screen string) string {
			if asked || !strings.Contains(screen, "[y/N]") {
				return ""
			}
			asked = true
			return typed
		}, nil, "gc")
		if code != want.code || strings.Count(f.calls(), "gc ") != want.calls || !strings.Contains(err, "150 histories (300.0K) would be archived; go on?") {
			t.Errorf("%q: code %d, calls %s, screen %s", typed, code, f.calls(), err)
		}
	}
}

func TestLongWorkShowsHowFarItIs(t *testing.T) {
	f := newFake(t)
	shown := make(chan struct{})
	f.more = func(s *ipc.Server) {
		answer(s, ipc.Fsck, func(ctx context.Context, _ ipc.FsckRequest) (ipc.FsckResponse, error) {
			select {
			case <-shown:
			case <-ctx.Done():
			}
			return ipc.FsckResponse{Findings: []ipc.FsckFinding{}}, nil
		})
		answer(s, ipc.StorageProgress, func(context.Context, ipc.Empty) (ipc.ProgressResponse, error) {
			return ipc.ProgressResponse{Works: []ipc.Work{{Method: "gc", Done: 1, Total: 2}, {Method: "fsck", Done: 12, Total: 345}}}, nil
		})
	}
	f.serve()
	closed := false
	code, _, err := f.onTerminal(func(screen string) string {
		if !closed && strings.Contains(screen, "checking: 12 of 345 histories") {
			closed = true
			close(shown)
		}
		return ""
	}, nil, "fsck")
	if code != 0 || !closed || !strings.HasSuffix(strings.TrimSpace(err), "nothing is wrong") {
		t.Errorf("code %d: %s", code, err)
	}
}

func TestHistoriesThatStayAreNamedAsLongAsTheyAreFew(t *testing.T) {
	f := newFake(t)
	r := ipc.GCResponse{Mode: "archive", RetentionDays: 30, ConfirmAbove: 100}
	for i := range 12 {
		r.Skipped = append(r.Skipped, ipc.GCSkip{HistoryRef: ipc.HistoryRef{UUID: id(byte(i)), PID: types.PID(i + 1)}, Code: types.ErrStorage, Reason: "line 3 is damaged"})
	}
	f.more = func(s *ipc.Server) { value(s, ipc.GC, &r) }
	f.serve()
	for _, c := range []struct {
		args  []string
		named int
		more  bool
	}{{[]string{"gc"}, 10, true}, {[]string{"gc", "-v"}, 12, false}} {
		got := f.run(c.args...)
		if n := strings.Count(got.err, "stays: line 3 is damaged"); got.code != 0 || n != c.named || strings.Contains(got.err, "2 more stay; -v names all") != c.more || !strings.Contains(got.err, "rnix fsck") {
			t.Errorf("%v: %d named: %+v", c.args, n, got)
		}
	}
}

func TestUntilIsADayATimeOrSoManyDays(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	for text, want := range map[string]string{
		"2026-12-31": "2026-12-31T23:59:59Z", "2026-05-06": "2026-05-06T23:59:59Z", "90d": "2026-08-04T07:08:09Z", "2026-12-31T18:00:00+01:00": "2026-12-31T18:00:00+01:00",
		"": "", "2026-05-05": "", "0d": "", "-3d": "", "99999d": "", "d": "", "tomorrow": "", "2026-13-01": "", "2020-01-01T00:00:00Z": "",
	} {
		got, err := parseUntil(text, now)
		if want == "" {
			if types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		} else if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %v, %v", text, got.Format(time.RFC3339), err)
		}
	}
}

func TestReasonsAreCountedAndBounded(t *testing.T) {
	if got := tally([]string{"a", "b", "b", "c\x1b[2J", "d", "e"}, 3); got != "b (2); a; c; and 2 other reasons" {
		t.Error(got)
	}
}

func TestRoomIsShownLargestFirstWithItsTotal(t *testing.T) {
	f := newFake(t)
	r := ipc.DUResponse{DataDir: "/d", Shared: ipc.BytesUsed{Scratch: 1024, Total: 1024}, Warnings: []string{"cannot look at x"}, Total: ipc.BytesUsed{Steps: 1 << 20, Scratch: 3 << 20, Total: 4 << 20},
		Histories: []ipc.HistoryUsage{{HistoryRef: ipc.HistoryRef{UUID: id(1), PID: 1, Name: "big", Intent: "fill\x1b[31m"}, State: "dead", BytesUsed: ipc.BytesUsed{Scratch: 3 << 20, Total: 3 << 20}},
			{HistoryRef: ipc.HistoryRef{UUID: id(2), PID: 2}, State: "archived", BytesUsed: ipc.BytesUsed{Steps: 1 << 20, Total: 1 << 20}}}}
	f.more = func(s *ipc.Server) { value(s, ipc.DU, &r) }
	f.serve()
	got := f.run("du")
	golden(t, "du", got.out+got.err)
	if got.code != 0 || strings.Contains(got.out+got.err, "\x1b") {
		t.Errorf("%+v", got)
	}
}

func TestFindingsNameTheirPlaceAndDecideTheExitCode(t *testing.T) {
	finding := func(severity string) ipc.FsckFinding {
		return ipc.FsckFinding{File: "/d/steps/x/steps.jsonl", Line: 7, Severity: severity, What: "the checksum is wrong\x1b[31m", Repair: "cut it off"}
	}
	done := finding("error")
	done.Done = "the history ends before it now"
	for _, c := range []struct {
		r    ipc.FsckResponse
		code int
		out  string
		err  string
	}{
		{ipc.FsckResponse{Histories: 2, Records: 10}, 0, "", "2 histories with 10 records: nothing is wrong"},
		{ipc.FsckResponse{Histories: 1, Findings: []ipc.FsckFinding{finding("note"), finding("warning")}}, 0, "warning /d/steps/x/steps.jsonl:7: the checksum is wrong\n        repair: cut it off\n", "1 warning, 1 note"},
		{ipc.FsckResponse{Histories: 1, Errors: 1, Findings: []ipc.FsckFinding{finding("error")}}, ExitError, "error   /d/steps/x/steps.jsonl:7: ", "1 can be mended with: rnix fsck --repair"},
		{ipc.FsckResponse{Histories: 1, Repaired: true, Findings: []ipc.FsckFinding{done}}, 0, "        done: the history ends before it now\n", "1 error"},
	} {
		f := newFake(t)
		f.more = func(s *ipc.Server) { value(s, ipc.Fsck, &c.r) }
		f.serve()
		r := f.run("fsck")
		if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) || strings.Contains(r.out+r.err, "\x1b") || (len(c.r.Findings) == 0) != (r.out == "") {
			t.Errorf("%+v: %+v", c.r, r)
		}
		if r := f.run("fsck", "--json"); r.code != c.code || r.err != "" || !strings.HasPrefix(r.out, `{"histories":`) {
			t.Errorf("%+v: %+v", c.r, r)
		}
	}
}

func TestStatusSaysWhatGoesWithinADay(t *testing.T) {
	for _, c := range []struct {
		s    ipc.StorageStatus
		want string
	}{
		{ipc.StorageStatus{}, "0 archived; garbage collection is off"},
		{ipc.StorageStatus{Archived: 1200, Deleted: 3, Mode: "archive"}, "1,200 archived, 3 deleted; nothing goes within a day"},
		{ipc.StorageStatus{Mode: "delete", Leaving: 2, Working: []ipc.Work{{Method: "gc", Done: 1, Total: 2}}}, "0 archived; within a day 2 histories are deleted for good (see: rnix gc --dry-run); gc is at 1 of 2"},
	} {
		if got := storageText(&c.s); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
