package fsck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// world is a data directory with histories.
type world struct {
	fs  *faultfs.FS
	ids []types.UUID
}

// make makes a data directory with n healthy histories, forks among them, with all that lies beside
// journals. Nobody has it open.
func makeWorld(t testing.TB, seed uint64, n int) *world {
	t.Helper()
	w := &world{fs: faultfs.New("/data")}
	j := w.open(t)
	r := rand.New(rand.NewPCG(seed, 1))
	highest := types.PID(0)
	var origin []step.Record
	for i := range n {
		id := types.NewUUID()
		o := recoverytest.Options{Steps: 1 + r.IntN(5)}
		if i%4 == 3 {
			o.Origin, o.OriginID = origin, w.ids[i-1]
		}
		lease, err := j.Acquire(t.Context(), id, "test")
		must(t, err)
		wr := step.NewWriter(j, id, lease)
		story, err := recoverytest.Write(t.Context(), wr, r, o)
		must(t, err, wr.Close(t.Context()))
		origin, highest = story.Records, max(highest, story.PID)
		w.ids = append(w.ids, id)
		w.beside(t, j, id, r)
	}
	c, err := j.PIDs()
	must(t, err)
	c.Raise(uint64(highest) + 1)
	_, err = c.Next()
	must(t, err, c.Settle(), j.Close())
	return w
}

// beside writes what lies beside a journal.
func (w *world) beside(t testing.TB, j *store.Files, id types.UUID, r *rand.Rand) {
	t.Helper()
	dir := step.Dir("/data", id)
	_, err := step.WriteAttachment(w.fs, dir, recoverytest.Picture())
	must(t, err)
	h, err := step.ReadHistory(t.Context(), j, id)
	must(t, err)
	p := h.Info()
	must(t, j.Index().Save(&p), step.WriteMeta(w.fs, dir, &step.Meta{UUID: id, SystemPrompt: "be <good>"}))
	for _, k := range []int{1 + r.IntN(len(h.Records)), len(h.Records)} {
		state := new(recovery.State)
		for rec, err := range j.Replay(t.Context(), id, 1) {
			must(t, err)
			if rec.Seq <= uint64(k) {
				state.Apply(&rec)
			}
		}
		cp, err := state.Checkpoint(id)
		must(t, err, step.WriteCheckpoint(w.fs, dir, cp))
	}
	var lines []byte
	for i := range 3 {
		lines = append(event.AppendJSON(lines, &event.Event{Seq: uint64(i + 1), UUID: id, Kind: event.StepStarted}), '\n')
	}
	must(t, durable.WriteFile(w.fs, dir+"/"+step.EventsFile, lines, durable.Durable))
}

func (w *world) open(t testing.TB) *store.Files {
	t.Helper()
	j, err := store.Open(w.fs, "/data", step.Synced)
	must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

func (w *world) options() Options { return Options{FS: w.fs, DataDir: "/data"} }

func (w *world) check(t testing.TB, o Options) Report {
	t.Helper()
	r, err := Check(t.Context(), o)
	must(t, err)
	return r
}

// repair opens the journal and repairs.
func (w *world) repair(t testing.TB) Report {
	t.Helper()
	j := w.open(t)
	o := w.options()
	o.Store = j
	r, err := Repair(t.Context(), o)
	must(t, err, j.Close())
	return r
}

func (w *world) read(t testing.TB, path string) string {
	t.Helper()
	b, err := durable.ReadFile(w.fs, path)
	must(t, err)
	return string(b)
}

func (w *world) write(t testing.TB, path, text string) {
	t.Helper()
	must(t, durable.WriteFile(w.fs, path, []byte(text), durable.Durable))
}

// files returns every file below the data directory with what is in it.
func (w *world) files(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	dirs := []string{"/data", "/data/steps"}
	for _, id := range w.ids {
		dirs = append(dirs, step.Dir("/data", id))
	}
	for _, dir := range dirs {
		entries, err := w.fs.ReadDir(dir)
		must(t, err)
		for _, e := range entries {
			if !e.IsDir() {
				out[filepath.Join(dir, e.Name())] = w.read(t, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out
}

func show(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s %s line %d offset %d: %s [%s] [%s]\n", f.Severity, f.File, f.Line, f.Offset, f.What, f.Repair, f.Done)
	}
	return b.String()
}

func TestAHealthyStoreHasNoFinding(t *testing.T) {
	for seed := range uint64(4) {
		w := makeWorld(t, seed, 30)
		before := w.files(t)
		asked, seen := 0, 0
		o := w.options()
		o.Snapshots = func(types.UUID, step.Snapshot) error { asked++; return nil }
		o.Progress = func(done, total int, _ types.UUID) { seen += total - done }
		r := w.check(t, o)
		if len(r.Findings) > 0 || r.Histories != 30 || r.Records < 100 || r.Worst() != "" {
			t.Errorf("seed %d: %d histories, %d records:\n%s", seed, r.Histories, r.Records, show(r))
		}
		if asked == 0 || seen != 30*31/2 {
			t.Errorf("%d snapshots asked for, progress %d", asked, seen)
		}
		for name, text := range w.files(t) {
			if before[name] != text {
				t.Errorf("%s was changed", name)
			}
		}
		j := w.open(t)
		o.Store = j
		if r := w.check(t, o); len(r.Findings) > 0 {
			t.Errorf("seed %d, while it is open:\n%s", seed, show(r))
		}
		must(t, j.Close())
	}
}

// lines changes the lines of a text.
func lines(text string, change func([]string) []string) string {
	return strings.Join(change(strings.SplitAfter(text, "\n")), "")
}

// middle is a line in the middle of a journal that begins a commit, as the one behind it does.
func middle(all []string) int {
	for i := len(all) / 2; i < len(all)-2; i++ {
		if !strings.Contains(all[i+1], `"joined":true`) {
			return i
		}
	}
	return len(all) / 2
}

type damage struct {
	file     string
	spoil    func(text string) string
	severity Severity
	what     string
	mended   bool
}

var damages = map[string]damage{
	"torn last line":   {step.StepsFile, func(s string) string { return s[:len(s)-9] }, Warning, "the line has no end", true},
	"zeros at the end": {step.StepsFile, func(s string) string { return s + "\x00\x00\x00" }, Warning, "NUL byte", true},
	"a flipped bit": {step.StepsFile, func(s string) string {
		return lines(s, func(all []string) []string {
			i := middle(all)
			all[i] = strings.Replace(all[i], `"time":"2`, `"time":"3`, 1)
			return all
		})
	}, Error, "checksum is wrong", true},
	"a line is missing": {step.StepsFile, func(s string) string {
		return lines(s, func(all []string) []string { i := middle(all); return slices.Delete(all, i, i+1) })
	}, Error, "lines are missing", true},
	"a line comes twice": {step.StepsFile, func(s string) string {
		return lines(s, func(all []string) []string { i := middle(all); return slices.Insert(all, i, all[i]) })
	}, Error, "were added", true},
	"changed by hand": {step.StepsFile, func(s string) string {
		return lines(s, func(all []string) []string {
			return slices.Insert(all, middle(all), `{"v":1,"kind":"marker","seq":3,"time":"2026-01-01T00:00:00Z","marker":{"name":"exit"}}`+"\n")
		})
	}, Error, "changed by hand", true},
	"changed by hand at the end": {step.StepsFile, func(s string) string { return s + `{"v":1,"kind":"marker","seq":3}` + "\n" }, Error, "changed by hand", true},
	"a newer program": {step.StepsFile, func(s string) string {
		return s + `{"v":99,"kind":"marker","seq":3}` + "\n"
	}, Error, "newer program", false},
	"checkpoint of zeros":      {step.CheckpointFile, func(s string) string { return strings.Repeat("\x00", len(s)) }, Warning, "cannot be read", true},
	"checkpoint that lies":     {step.CheckpointFile, func(s string) string { return strings.Replace(s, `"tokens_used":`, `"tokens_used":1`, 1) }, Warning, "amount to", true},
	"checkpoint of the future": {step.CheckpointFile, func(s string) string { return seq(s, "9999") }, Warning, "behind record 9999", true},
	"older checkpoint":         {previousCheckpoint, func(string) string { return "{" }, Warning, "cannot be read", true},
	"info is lost":             {step.InfoFile, nil, Warning, "missing", true},
	"info is damaged":          {step.InfoFile, func(s string) string { return s[:20] }, Warning, "damaged", true},
	"info of another":          {step.InfoFile, func(s string) string { return strings.Replace(s, `"uuid":"0`, `"uuid":"1`, 1) }, Warning, "of another history", true},
	"info with another PID":    {step.InfoFile, func(s string) string { return strings.Replace(s, `"pid":`, `"pid":77`, 1) }, Warning, "says PID 77", true},
	"meta is damaged":          {step.MetaFile, func(string) string { return "x" }, Warning, "damaged", true},
	"events torn":              {step.EventsFile, func(s string) string { return s[:len(s)-5] }, Warning, "cannot be read", true},
	"events damaged":           {step.EventsFile, func(s string) string { return "{]\n" + s }, Warning, "cannot be read", true},
	"a temporary file":         {"." + step.InfoFile + ".0123.tmp~", func(string) string { return "{" }, Note, "interrupted", true},
}

// seq changes the sequence number of a checkpoint, in both places.
func seq(s, n string) string {
	for _, from := range []string{"", `"state":{`} { // its own, and that of its state
		i := strings.Index(s, from)
		i += strings.Index(s[i:], `"seq":`) + len(`"seq":`)
		j := i + strings.IndexByte(s[i:], ',')
		s = s[:i] + n + s[j:]
	}
	return s
}

// plant spoils a file of a history.
func (w *world) plant(t testing.TB, id types.UUID, d damage) (path string) {
	t.Helper()
	path = filepath.Join(step.Dir("/data", id), d.file)
	if d.spoil == nil {
		must(t, w.fs.Remove(path))
		return path
	}
	text := ""
	if _, err := w.fs.Stat(path); err == nil {
		text = w.read(t, path)
	}
	spoilt := d.spoil(text)
	if spoilt == text {
		t.Fatal("nothing was spoilt")
	}
	w.write(t, path, spoilt)
	return path
}

func TestEachDamageIsFoundAndMended(t *testing.T) {
	for name, d := range damages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := makeWorld(t, 7, 3)
				id := w.ids[1]
				w.plant(t, id, d)
				spoilt := w.files(t)
				r := w.check(t, w.options())
				i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.File == d.file && strings.Contains(f.What, d.what) })
				if i < 0 || r.Findings[i].Severity != d.severity || r.Findings[i].UUID == nil || *r.Findings[i].UUID != id || (r.Findings[i].Repair != "") != d.mended {
					t.Fatalf("not found:\n%s", show(r))
				}
				if f := r.Findings[i]; d.file == step.StepsFile && (f.Line == 0 || f.Offset == 0) {
					t.Errorf("no place: %+v", f)
				}
				for name, text := range w.files(t) {
					if spoilt[name] != text {
						t.Errorf("the check has changed %s", name)
					}
				}
				time.Sleep(2 * time.Minute) // so that nobody can be writing a temporary file any more
				fixed := w.repair(t)
				if !d.mended {
					if got := w.files(t)[filepath.Join(step.Dir("/data", id), d.file)]; got != spoilt[filepath.Join(step.Dir("/data", id), d.file)] {
						t.Error("it was changed")
					}
					return
				}
				for _, f := range fixed.Findings {
					if f.Done == "" || strings.Contains(f.Done, "not repaired") {
						t.Errorf("not done:\n%s", show(fixed))
					}
				}
				if r := w.check(t, w.options()); len(r.Findings) > 0 {
					t.Errorf("after a repair:\n%sit had done:\n%s", show(r), show(fixed))
				}
				w.kept(t, spoilt)
				w.rests(t, id, d.file == step.StepsFile)
				once := w.files(t)
				w.repair(t)
				if twice := w.files(t); len(twice) != len(once) {
					t.Errorf("a second repair has changed something: %d files, %d before", len(twice), len(once))
				}
			})
		})
	}
}

// rests checks that a history whose journal was cut does not go on by itself: it has ended, or waits for a
// person.
func (w *world) rests(t testing.TB, id types.UUID, cut bool) {
	t.Helper()
	h, err := step.ReadDir(t.Context(), w.fs, step.Dir("/data", id), id)
	if err != nil {
		t.Fatal(err)
	}
	if info := h.Info(); cut && info.Exit == nil && info.SuspendReason != Rested && info.SuspendReason != "paused" {
		t.Errorf("it would go on by itself: %+v", info)
	}
}

// kept checks that every line of every journal, and every other file that was changed, is still somewhere.
func (w *world) kept(t testing.TB, before map[string]string) {
	t.Helper()
	after := w.files(t)
	for name, text := range before {
		if !strings.HasPrefix(name, "/data/steps/") || strings.Contains(name, ".tmp~") || after[name] == text {
			continue
		}
		found := false
		for other, now := range after {
			found = found || strings.HasPrefix(other, name+".before-repair-") && now == text
		}
		if !found {
			t.Errorf("%s was changed and not kept", name)
		}
	}
}

func TestWhatBelongsToNoHistoryIsFoundAndMended(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, w *world)
		what  string
	}{
		"counter behind":  {func(t *testing.T, w *world) { w.write(t, "/data/pid", `{"v":1,"next":1}`) }, "could be used twice"},
		"not a counter":   {func(t *testing.T, w *world) { w.write(t, "/data/pid", `hello`) }, "not a counter"},
		"temporary file":  {func(t *testing.T, w *world) { w.write(t, "/data/.pid.00.tmp~", `{`) }, "interrupted"},
		"index too short": {func(t *testing.T, w *world) { w.write(t, "/data/index.jsonl", "{\"v\":1,\"closed\":true}\n") }, "does not have this history"},
		"index too long": {func(t *testing.T, w *world) {
			old := w.read(t, "/data/index.jsonl")
			w.write(t, "/data/index.jsonl", `{"v":1,"info":{"v":1,"uuid":"`+types.NewUUID().String()+`","state":"dead"}}`+"\n"+old)
		}, "no directory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := makeWorld(t, 3, 3)
				c.spoil(t, w)
				if r := w.check(t, w.options()); !strings.Contains(show(r), c.what) {
					t.Fatalf("not found:\n%s", show(r))
				}
				time.Sleep(2 * time.Minute)
				r := w.repair(t)
				if again := w.check(t, w.options()); len(again.Findings) > 0 {
					t.Errorf("after a repair:\n%sit had done:\n%s", show(again), show(r))
				}
			})
		})
	}
}

// journal writes a history of these records, with right checksums, and nothing beside it.
func journal(t testing.TB, w *world, recs ...step.Record) types.UUID {
	t.Helper()
	id := types.NewUUID()
	must(t, w.fs.Mkdir(step.Dir("/data", id), durable.DirPerm))
	var b []byte
	for i, r := range recs {
		r.V, r.Seq, r.Time = step.FormatVersion, uint64(i+1), time.Unix(int64(i+1), 0)
		var err error
		b, err = step.Encode(b, &r)
		must(t, err)
	}
	w.write(t, filepath.Join(step.Dir("/data", id), step.StepsFile), string(b))
	return id
}

func TestRecordsThatDoNotBelongTogetherAreNamed(t *testing.T) {
	spawn := step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerSpawn, PID: 1}}
	says := func(role rnixctx.Role, answers string, asks ...string) step.Record {
		m := &rnixctx.Message{Role: role, Content: "x", ToolCallID: answers}
		for _, id := range asks {
			m.ToolCalls = append(m.ToolCalls, rnixctx.ToolCall{ID: id, Name: "t", Input: []byte("{}")})
		}
		return step.Record{Kind: step.KindMessage, Message: m}
	}
	begins := func(id string) step.Record {
		return step.Record{Kind: step.KindIntent, Intent: &step.Intent{Step: 1, CallID: id, Tool: "t"}}
	}
	ends := step.Record{Kind: step.KindResult, Result: &step.Result{Step: 1, CallID: "a", Tool: "t"}}
	fork := step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerFork, Detail: []byte(`{"origin_uuid":"` + types.NewUUID().String() + `","records":9}`)}}
	user, asks, answers := says(rnixctx.RoleUser, ""), says(rnixctx.RoleAssistant, "", "a"), says(rnixctx.RoleTool, "a")
	for name, c := range map[string]struct {
		recs []step.Record
		line int
		what string
	}{
		"all is well":                  {[]step.Record{spawn, user, asks, begins("a"), ends, answers}, 0, ""},
		"a result without an intent":   {[]step.Record{spawn, user, asks, ends}, 4, `"a" has ended, and was not begun`},
		"an intent without a call":     {[]step.Record{spawn, user, asks, begins("b")}, 4, `"b" was begun, and the answer before has no such call`},
		"an intent without an answer":  {[]step.Record{spawn, user, begins("a")}, 3, "no such call"},
		"a prompt that is not there":   {[]step.Record{spawn, user, {Kind: step.KindStep, Step: &step.StepRecord{StepNumber: 1, MessageCount: 2}}}, 3, "had 2 messages, and there are 1"},
		"an answer to nothing":         {[]step.Record{spawn, user, answers}, 3, "was not asked for"},
		"two answers":                  {[]step.Record{spawn, user, asks, begins("a"), ends, answers, answers}, 7, "answered twice"},
		"a wrong order":                {[]step.Record{spawn, asks, answers}, 0, "no provider takes"},
		"a fork that was not finished": {[]step.Record{fork, spawn, user}, 0, "it has 3 of 10 records"},
	} {
		w := &world{fs: faultfs.New("/data/steps")}
		id := journal(t, w, c.recs...)
		r := w.check(t, w.options())
		r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return f.File != step.StepsFile })
		if c.what == "" {
			if len(r.Findings) > 0 {
				t.Errorf("%s:\n%s", name, show(r))
			}
			continue
		}
		if len(r.Findings) != 1 || r.Findings[0].Line != c.line || !strings.Contains(r.Findings[0].What, c.what) || *r.Findings[0].UUID != id || r.Findings[0].Repair != "" {
			t.Errorf("%s:\n%s", name, show(r))
		}
	}
}

func TestEveryFaultOfAJournalHasItsPlace(t *testing.T) {
	w := makeWorld(t, 7, 1)
	path := filepath.Join(step.Dir("/data", w.ids[0]), step.StepsFile)
	all := strings.SplitAfter(w.read(t, path), "\n")
	all[3] = "x\n"
	all[6] = strings.Replace(all[6], `"kind"`, `"kinD"`, 1)
	w.write(t, path, strings.Join(all, ""))
	r := w.check(t, w.options())
	var got []string
	for _, f := range r.Findings {
		if f.File == step.StepsFile {
			if text := strings.Join(all, "")[f.Offset:]; !strings.HasPrefix(text, all[f.Line-1]) {
				t.Errorf("line %d is not at offset %d", f.Line, f.Offset)
			}
			got = append(got, fmt.Sprint(f.Line))
		}
	}
	if strings.Join(got, " ") != "4 7" || r.Records != 3 || !strings.Contains(show(r), fmt.Sprintf("with %d records that can be read", len(all)-1-5)) {
		t.Errorf("%d lines, faults in lines %v:\n%s", len(all)-1, got, show(r))
	}
}

func TestOnlyTheHistoriesThatAreAskedForAreLookedAt(t *testing.T) {
	w := makeWorld(t, 2, 3)
	w.plant(t, w.ids[0], damages["info is damaged"])
	w.write(t, "/data/pid", "x")
	o := w.options()
	o.Only = w.ids[1:]
	if r := w.check(t, o); len(r.Findings) > 0 || r.Histories != 2 {
		t.Errorf("%d histories:\n%s", r.Histories, show(r))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, o); types.CodeOf(err) != types.ErrCancelled {
		t.Errorf("got %v", err)
	}
}

func TestAHistoryWhoseRecordsAreGoneIsNotWhole(t *testing.T) {
	w := makeWorld(t, 7, 3)
	path := filepath.Join(step.Dir("/data", w.ids[1]), step.InfoFile)
	info, err := step.ReadInfo(w.fs, filepath.Dir(path))
	must(t, err)
	info.Step = 2
	text, err := json.Marshal(info)
	must(t, err)
	w.write(t, path, string(text))
	w.write(t, filepath.Join(filepath.Dir(path), step.StepsFile), "")
	r := w.check(t, w.options())
	if len(r.Findings) != 1 || r.Worst() != Error || r.Findings[0].File != step.StepsFile || !strings.Contains(r.Findings[0].What, "has no records, and proc-info.json says 2 steps") {
		t.Errorf("%s", show(r))
	}
}

func TestAHistoryOfWhichNothingCanBeReadIsNamed(t *testing.T) {
	w := makeWorld(t, 7, 3)
	path := filepath.Join(step.Dir("/data", w.ids[1]), step.InfoFile)
	w.write(t, path, "junk")
	w.write(t, filepath.Join(filepath.Dir(path), step.StepsFile), "")
	r := w.check(t, w.options())
	if len(r.Findings) != 1 || r.Worst() != Error || r.Findings[0].File != step.InfoFile || !strings.Contains(r.Findings[0].What, "there are no records to make it anew from") {
		t.Errorf("%s", show(r))
	}
}

func TestAMissingSnapshotIsNamed(t *testing.T) {
	w := makeWorld(t, 1, 6)
	o := w.options()
	o.Snapshots = func(id types.UUID, s step.Snapshot) error { return errors.New("gone " + s.ID) }
	r := w.check(t, o)
	if len(r.Findings) == 0 {
		t.Fatal("nothing found")
	}
	for _, f := range r.Findings {
		if f.Severity != Warning || f.Line == 0 || !strings.Contains(f.What, "gone ") {
			t.Errorf("got %+v", f)
		}
	}
}

func TestAHistoryThatIsWrittenIsLeftAlone(t *testing.T) {
	w := makeWorld(t, 5, 2)
	j := w.open(t)
	lease, err := j.Acquire(t.Context(), w.ids[0], "an agent")
	must(t, err)
	wr := step.NewWriter(j, w.ids[0], lease)
	path := w.plant(t, w.ids[0], damages["checkpoint that lies"])
	before, files := w.read(t, path), len(w.files(t))
	o := w.options()
	o.Store = j
	r, err := Repair(t.Context(), o)
	must(t, err)
	if n := len(w.files(t)); n != files {
		t.Errorf("%d files, %d before", n, files)
	}
	if !strings.Contains(show(r), "not repaired") || !strings.Contains(show(r), "an agent") || w.read(t, path) != before {
		t.Errorf("got:\n%s", show(r))
	}
	o.Live = func(id types.UUID) bool { return id == w.ids[0] }
	steps := filepath.Join(step.Dir("/data", w.ids[0]), step.StepsFile)
	w.write(t, steps, w.read(t, steps)+`{"v":1,"kind":"mar`)
	if r := w.check(t, o); len(r.Findings) != 2 || r.Findings[0].Severity != Note {
		t.Errorf("a line that is being written:\n%s", show(r))
	}
	must(t, wr.Close(t.Context()))
}

func TestARepairNeedsTheJournal(t *testing.T) {
	w := makeWorld(t, 5, 1)
	if _, err := Repair(t.Context(), w.options()); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("got %v", err)
	}
}

func TestACrashInTheMiddleOfARepairLosesNothing(t *testing.T) {
	stride := soak.Pick(t, "calls from one crash to the next", 3, 1)
	for i, name := range []string{"a flipped bit", "torn last line", "zeros at the end", "changed by hand at the end", "checkpoint that lies", "info is damaged"} {
		t.Run(name, func(t *testing.T) {
			sick := makeWorld(t, 7, 2)
			id, d := sick.ids[1], damages[name]
			path := sick.plant(t, id, d)
			spoilt := sick.read(t, path)
			for n := 1 + i%stride; ; n += stride {
				w := &world{fs: sick.fs.Clone(), ids: sick.ids}
				j := w.open(t)
				o := w.options()
				o.Store = j
				w.fs.CrashAt(n)
				_, err := Repair(t.Context(), o)
				calls := w.fs.Calls()
				w.fs.Crash(uint64(n % 3))
				if !w.has(t, step.Dir("/data", id), spoilt) {
					t.Fatalf("after a crash at call %d (%v) nothing has what %s had", n, err, d.file)
				}
				w.repair(t)
				if r := w.check(t, w.options()); len(r.Findings) > 0 {
					t.Fatalf("after a crash at call %d and a second repair:\n%s", n, show(r))
				}
				if n > calls {
					return
				}
				n += n / 20
			}
		})
	}
}

// has reports whether a file of a directory holds a text.
func (w *world) has(t testing.TB, dir, text string) bool {
	t.Helper()
	entries, err := w.fs.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if w.read(t, filepath.Join(dir, e.Name())) == text {
			return true
		}
	}
	return false
}

// Worst returns the highest severity that was found; empty = nothing was.
func (r *Report) Worst() Severity {
	for _, s := range []Severity{Error, Warning, Note} {
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == s }) {
			return s
		}
	}
	return ""
}
