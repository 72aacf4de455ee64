package clock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // a machine may have no zones

	"go.uber.org/goleak"

	"rnix/drivers/clock"
	"rnix/types"
	"rnix/vfs"
	"rnix/vfs/vfstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ran knows of PID 7 alone.
func ran(pid types.PID) (time.Duration, bool) { return 2*time.Hour + 3*time.Second/2, pid == 7 }

// open opens the clock for a caller.
func open(t *testing.T, c vfs.Caller) vfs.VFSFile {
	t.Helper()
	f, err := clock.New(ran)("", vfs.OpenReadWrite)
	if err == nil {
		err = f.(vfs.CallerBinder).BindCaller(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func read(t *testing.T, f vfs.VFSFile) string {
	t.Helper()
	b, err := f.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDeviceKeepsTheContract(t *testing.T) {
	vfstest.Run(t, vfstest.Device{
		Path: clock.Path,
		Open: func(testing.TB) (vfs.VFSFileFactory, vfs.Caller) {
			return clock.New(ran), vfs.Caller{PID: 7, Env: []string{"TZ=UTC"}}
		},
		Tools: clock.Tools(),
		Samples: []vfstest.Sample{
			{Tool: "clock", Want: "zone:\tUTC\nrunning:\t2h0m1s (pauses not counted)\n", Volatile: true},
			{Name: "read", Want: "+00:00\nweekday:\t", Volatile: true},
			{Name: "asked for more", Tool: "clock", Input: `{"zone":"UTC"}`, WantCode: types.ErrInvalid},
			{Name: "below", Subpath: "/now", WantCode: types.ErrNotFound},
		},
	})
}

func TestReadTellsWhenItWasOpenedAndARequestWhenItWasMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at the first second of the year 2000
		f := open(t, vfs.Caller{Env: []string{"TZ=UTC"}})
		time.Sleep(25 * time.Hour)
		if got, want := read(t, f), "time:\t2000-01-01T00:00:00+00:00\nweekday:\tSaturday\nzone:\tUTC\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if err := f.Write(t.Context(), clock.Tools()[0].Input(nil)); err != nil {
			t.Fatal(err)
		}
		if got, want := read(t, f), "time:\t2000-01-02T01:00:00+00:00\nweekday:\tSunday\nzone:\tUTC\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

func TestOnlyAProcessIsToldHowLongItHasRun(t *testing.T) {
	for pid, want := range map[types.PID]bool{0: false, 7: true, 8: false} { // the user, one that runs, one that nobody knows
		if got := strings.Contains(read(t, open(t, vfs.Caller{PID: pid})), "running:\t2h0m1s"); got != want {
			t.Errorf("PID %d: %v", pid, got)
		}
	}
}

func TestZoneIsThatOfTheCallersEnvironment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for env, want := range map[string]string{
			"TZ=Asia/Tokyo":                            "2000-01-01T09:00:00+09:00 Saturday Asia/Tokyo (JST)",
			"TZ=America/New_York":                      "1999-12-31T19:00:00-05:00 Friday America/New_York (EST)",
			"TZ=America/Sao_Paulo":                     "1999-12-31T22:00:00-02:00 Friday America/Sao_Paulo", // its abbreviation is "-02"
			"TZ=:Europe/Berlin":                        "2000-01-01T01:00:00+01:00 Saturday Europe/Berlin (CET)",
			"TZ=/usr/share/zoneinfo/Asia/Kolkata":      "2000-01-01T05:30:00+05:30 Saturday Asia/Kolkata (IST)",
			"TZ=Asia/Tokyo PATH=/bin TZ=Europe/London": "2000-01-01T00:00:00+00:00 Saturday Europe/London (GMT)",
			"TZ=":                 "2000-01-01T00:00:00+00:00 Saturday UTC",
			"TZ=Local":            `2000-01-01T00:00:00+00:00 Saturday UTC, since no zone of this system is called "Local"`,
			"TZ=../../etc/passwd": `2000-01-01T00:00:00+00:00 Saturday UTC, since no zone of this system is called "../../etc/passwd"`,
			"TZ=/etc/hostname":    `2000-01-01T00:00:00+00:00 Saturday UTC, since no zone of this system is called "/etc/hostname"`,
			"TZ=a\nb":             `2000-01-01T00:00:00+00:00 Saturday UTC, since no zone of this system is called "a\nb"`,
		} {
			got := read(t, open(t, vfs.Caller{Env: strings.Split(env, " ")}))
			got = strings.NewReplacer("time:\t", "", "\nweekday:\t", " ", "\nzone:\t", " ").Replace(strings.TrimSuffix(got, "\n"))
			if got != want {
				t.Errorf("%q: %q, want %q", env, got, want)
			}
		}
	})
}
