package step

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/types"
)

// archived returns an archive that has nothing but one entry.
func archived(t testing.TB, name string, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	must(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(b)), Mode: 0o600}))
	_, err = w.Write(b)
	must(t, err, w.Close(), gz.Close())
	return out.Bytes()
}

func TestArchivesAreListedWithoutBeingOpened(t *testing.T) {
	fsys := faultfs.New("/data/archive")
	for i := range 20 {
		h := NewArchiveHead(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: types.PID(i + 1), Intent: strings.Repeat("x", 9000)}}, time.Now(), "old")
		must(t, durable.WriteFile(fsys, ArchivePath("/data", h.Info.UUID), archived(t, ArchiveHeadFile, h), durable.Durable))
	}
	for round := range 3 {
		fsys.Fail(faultfs.Fault{})
		a, err := OpenArchives(fsys, "/data")
		must(t, err)
		opened := strings.Count(strings.Join(fsys.Trace(), "\n"), "open /data/archive/0")
		if list := a.List(); len(list) != 20 || list[0].Size == 0 || len(list[0].Info.Intent) > 600 || list[0].Why != "old" || (round == 0) != (opened == 20) || round > 0 && opened != 0 {
			t.Errorf("round %d: %d listed, %d opened", round, len(list), opened)
		}
		must(t, a.Close())
	}
	// One that was replaced is read again.
	a, err := OpenArchives(fsys, "/data")
	must(t, err)
	h := a.List()[7].ArchiveHead
	h.Why = "asked for"
	must(t, a.Close(), durable.WriteFile(fsys, ArchivePath("/data", h.Info.UUID), archived(t, ArchiveHeadFile, h), durable.Durable))
	a, err = OpenArchives(fsys, "/data")
	must(t, err)
	defer a.Close()
	if got, ok := a.Find(h.Info.UUID); !ok || got.Why != "asked for" {
		t.Errorf("%+v", got)
	}
}

func TestHeadThatIsNoneIsRefused(t *testing.T) {
	good := ArchiveHead{V: FormatVersion, Info: ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID()}}}
	if _, err := ReadArchiveHead(bytes.NewReader(archived(t, ArchiveHeadFile, good))); err != nil {
		t.Fatal(err)
	}
	newer, nobody, negative := good, good, good
	newer.V, nobody.Info.UUID, negative.Bytes = FormatVersion+1, types.UUID{}, -1
	for name, tt := range map[string]struct {
		b    []byte
		code types.ErrCode
	}{
		"empty": {nil, types.ErrStorage}, "junk": {[]byte("junk"), types.ErrStorage}, "other name": {archived(t, "x", good), types.ErrStorage},
		"newer": {archived(t, ArchiveHeadFile, newer), types.ErrVersion}, "nobody": {archived(t, ArchiveHeadFile, nobody), types.ErrStorage},
		"negative": {archived(t, ArchiveHeadFile, negative), types.ErrStorage}, "no object": {archived(t, ArchiveHeadFile, 7), types.ErrStorage},
		"cut off": {archived(t, ArchiveHeadFile, good)[:40], types.ErrStorage}, "too large": {archived(t, ArchiveHeadFile, strings.Repeat("x", maxHead)), types.ErrStorage},
	} {
		if _, err := ReadArchiveHead(bytes.NewReader(tt.b)); types.CodeOf(err) != tt.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCounterThatIsLostCountsOnAboveAllThatIsGone(t *testing.T) {
	fsys, j := memory(t)
	must(t, j.PutInfo(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: 5}}))
	must(t, OpenTombs(fsys, "/data").Add(Tomb{UUID: types.NewUUID(), PID: 40, Why: "old"}))
	h := NewArchiveHead(&ProcInfo{ProcStatus: types.ProcStatus{UUID: types.NewUUID(), PID: 30}}, time.Now(), "old")
	must(t, fsys.Mkdir(ArchiveDir("/data"), 0o700), durable.WriteFile(fsys, ArchivePath("/data", h.Info.UUID), archived(t, ArchiveHeadFile, h), durable.Durable))
	next := func() uint64 {
		c, err := j.PIDs()
		must(t, err)
		n, err := c.Next()
		must(t, err)
		return n
	}
	if n := next(); n != 41 {
		t.Errorf("the next PID is %d", n)
	}
	must(t, fsys.Remove("/data/pid"), fsys.Remove(filepath.Join("/data", TombFile)))
	if n := next(); n != 31 {
		t.Errorf("the next PID is %d", n)
	}
	must(t, durable.WriteFile(fsys, filepath.Join("/data", TombFile), []byte("junk\n\n"), durable.Durable))
	if n := next(); n < 31 { // the counter is there: what is gone is not asked
		t.Errorf("the next PID is %d", n)
	}
	must(t, fsys.Remove("/data/pid"))
	if _, err := j.PIDs(); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), TombFile) {
		t.Errorf("%v", err)
	}
}

func TestWhatWasDeletedIsRememberedThroughAnyCrash(t *testing.T) {
	ids := []types.UUID{types.NewUUID(), types.NewUUID(), types.NewUUID()}
	for n := 1; n < 40; n++ {
		for seed := range uint64(6) {
			fsys := faultfs.New("/data")
			fsys.CrashAt(n)
			tombs, acked := OpenTombs(fsys, "/data"), 0
			for i, id := range ids {
				if tombs.Add(Tomb{UUID: id, PID: types.PID(i + 1), At: time.Now(), Why: "old"}) != nil {
					break
				}
				acked++
			}
			fsys.Crash(seed)
			tombs = OpenTombs(fsys, "/data")
			must(t, tombs.Problem())
			for i, id := range ids[:acked] {
				if tomb, ok := tombs.Find(id); !ok || tomb.PID != types.PID(i+1) || tomb.Why != "old" {
					t.Fatalf("crash at call %d, seed %d: %d acknowledged, %d is lost: %+v", n, seed, acked, i, tomb)
				}
			}
			must(t, tombs.Add(Tomb{UUID: ids[0], PID: 9, At: time.Now()}))
			if again := OpenTombs(fsys, "/data"); again.Problem() != nil || again.List()[len(again.List())-1].PID != 9 {
				t.Fatalf("crash at call %d, seed %d: after going on: %+v, %v", n, seed, again.List(), again.Problem())
			}
		}
	}
}

func TestPinHoldsUntilItsTime(t *testing.T) {
	fsys := faultfs.New("/data/h")
	if p, err := ReadPin(fsys, "/data/h"); p != nil || err != nil || p.Holds(time.Now()) {
		t.Errorf("%+v, %v", p, err)
	}
	now := time.Now().UTC()
	must(t, WritePin(fsys, "/data/h", &Pin{At: now, Until: now.Add(time.Hour), Note: "n"}))
	fsys.Crash(0)
	p, err := ReadPin(fsys, "/data/h")
	if err != nil || p.Note != "n" || !p.Holds(now.Add(time.Hour)) || p.Holds(now.Add(time.Hour+1)) || !(&Pin{}).Holds(now) {
		t.Errorf("%+v, %v", p, err)
	}
	if had, err := RemovePin(fsys, "/data/h"); !had || err != nil {
		t.Errorf("%v, %v", had, err)
	}
	fsys.Crash(0)
	if had, err := RemovePin(fsys, "/data/h"); had || err != nil {
		t.Errorf("it came back: %v, %v", had, err)
	}
	must(t, WritePin(fsys, "/data/h", &Pin{}))
	fsys.Fail(faultfs.Fault{At: 1, Err: syscall.EIO, Persistent: true})
	if _, err := RemovePin(fsys, "/data/h"); types.CodeOf(err) != types.ErrStorage || !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	if _, err := ReadPin(fsys, "/data/h"); err == nil {
		t.Error("what cannot be read is not pinned")
	}
}

func TestFirstLineOfAText(t *testing.T) {
	for text, want := range map[string]string{"": "", " \n a b \n c": "a b", "one": "one", strings.Repeat("é", 400): strings.Repeat("é", 256) + "… (800 bytes)"} {
		if got := FirstLine(text); got != want {
			t.Errorf("%.20q: %q", text, got)
		}
	}
}
