package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsKeptComesFromTheFileAndTheEnvironment(t *testing.T) {
	s := sources(t, map[string]string{"user/config.yaml": `gc:
  retention_days: 0
  max_entries: 9
  interval_seconds: 60
  mode: delete
daemon: {auto_resume: false, auto_resume_max: 0}
checkpoint:
  every_steps: 10
  every_seconds: 0
snapshots: {enabled: false, max_bytes: 2GiB, max_files: 7}
`, "project/config.yaml": "checkpoint: {every_steps: 2, every_seconds: 20}\n"},
		"RNIX_GC_MAX_ENTRIES", "8", "RNIX_SNAPSHOTS_MAX_BYTES", "4096", "RNIX_DAEMON_AUTO_RESUME", "true")
	c := Load(s)
	user, project := filepath.Join(s.UserDir, "config.yaml"), filepath.Join(s.ProjectDir, ".rnix", "config.yaml")
	expect(t, c.Problems)
	for _, diff := range []string{
		cmp.Diff(GC{Value[int]{0, user + ":2"}, Value[int]{0, FromDefault}, Value[int]{8, "environment RNIX_GC_MAX_ENTRIES"}, Value[int]{60, user + ":4"}, Value[GCMode]{"delete", user + ":5"}}, c.GC),
		cmp.Diff(Resume{Value[bool]{true, "environment RNIX_DAEMON_AUTO_RESUME"}, Value[int]{0, user + ":6"}}, c.Resume),
		cmp.Diff(Checkpoint{Value[int]{2, project + ":1"}, Value[int]{20, project + ":1"}}, c.Checkpoint),
		cmp.Diff(Snapshots{Value[bool]{false, user + ":10"}, Value[Bytes]{4096, "environment RNIX_SNAPSHOTS_MAX_BYTES"}, Value[int]{7, user + ":10"}}, c.Snapshots),
	} {
		if diff != "" {
			t.Error(diff)
		}
	}
}

func TestEveryKeyOfWhatIsKeptHasItsVariable(t *testing.T) {
	env := map[string]string{
		"gc.retention_days": "1", "gc.max_entries": "1", "gc.interval_seconds": "61", "gc.mode": "delete", "daemon.auto_resume": "false",
		"daemon.auto_resume_max": "1", "checkpoint.every_steps": "1", "checkpoint.every_seconds": "1", "snapshots.enabled": "false",
		"snapshots.max_bytes": "1KiB", "snapshots.max_files": "1", "disk.min_free": "0", "disk.outputs": "3MB",
	}
	origin := func(c Config) map[string]string {
		return map[string]string{
			"gc.retention_days": c.GC.RetentionDays.Origin, "gc.max_entries": c.GC.MaxEntries.Origin, "gc.interval_seconds": c.GC.IntervalSeconds.Origin,
			"gc.mode": c.GC.Mode.Origin, "daemon.auto_resume": c.Resume.Auto.Origin, "daemon.auto_resume_max": c.Resume.Max.Origin,
			"checkpoint.every_steps": c.Checkpoint.EverySteps.Origin, "checkpoint.every_seconds": c.Checkpoint.EverySeconds.Origin,
			"snapshots.enabled": c.Snapshots.Enabled.Origin, "snapshots.max_bytes": c.Snapshots.MaxBytes.Origin, "snapshots.max_files": c.Snapshots.MaxFiles.Origin,
			"disk.min_free": c.Disk.MinFree.Origin, "disk.outputs": c.Disk.Outputs.Origin,
		}
	}
	for key, value := range env {
		name := "RNIX_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
		c := Load(Sources{Lookup: vars(name, value)})
		for k, got := range origin(c) {
			want := FromDefault
			if k == key {
				want = "environment " + name
			}
			if got != want {
				t.Errorf("with %s, %s comes from %q, want %q", name, k, got, want)
			}
		}
		expect(t, c.Problems)
		wrong := Load(Sources{Lookup: vars(name, "some")})
		expect(t, wrong.Problems, "environment: "+name)
	}
}

func TestAProjectSaysNothingAboutWhatIsKept(t *testing.T) {
	s := sources(t, map[string]string{"project/config.yaml": "gc: {retention_days: 1, max_entries: 1, interval_seconds: 60, mode: delete}\n" +
		"daemon: {auto_resume: true, auto_resume_max: 9}\nsnapshots: {enabled: false, max_bytes: 1, max_files: 1}\ndisk: {min_free: 0, outputs: 1}\ncheckpoint: {every_steps: 6, every_seconds: 0}\n"})
	c := Load(s)
	var want []string
	for _, key := range []string{"gc.retention_days", "gc.max_entries", "gc.interval_seconds", "gc.mode", "daemon.auto_resume", "daemon.auto_resume_max",
		"snapshots.enabled", "snapshots.max_bytes", "snapshots.max_files", "disk.min_free", "disk.outputs"} {
		want = append(want, key+": a project cannot set this")
	}
	expect(t, c.Problems, append(want, "checkpoint.every_steps: a project may only tighten", "checkpoint.every_seconds: a project may only tighten")...)
	c.Problems = nil
	if diff := cmp.Diff(Load(Sources{}), c); diff != "" {
		t.Error(diff)
	}
}

func TestAWrongNumberOfWhatIsKeptIsNamedWithItsPlace(t *testing.T) {
	c := Load(sources(t, map[string]string{"user/config.yaml": `gc:
  retention_days: -1
  max_entries: 3000000000
  interval_seconds: 59
  mode: shred
daemon:
  auto_resume: maybe
  auto_resume_max: -2
checkpoint:
  every_steps: -1
snapshots:
  max_bytes: 1 lightyear
  max_files: -5
  retention: 3
disk: {min_free: much}
`}))
	expect(t, c.Problems, "config.yaml:2:19: gc.retention_days: is negative; write 0", "config.yaml:3:16: gc.max_entries: 3000000000 must be between 0 and",
		"config.yaml:4:21: gc.interval_seconds: 59 must be between 60 and", `config.yaml:5:9: gc.mode: "shred" is not known; write archive or delete`,
		"config.yaml:7:16: daemon.auto_resume: ", "config.yaml:8:20: daemon.auto_resume_max: is negative", "config.yaml:10:16: checkpoint.every_steps: is negative",
		`config.yaml:12:14: snapshots.max_bytes: "1 lightyear" is not a size`, "config.yaml:13:14: snapshots.max_files: is negative",
		"config.yaml:14:3: snapshots.retention: unknown key", `config.yaml:15:18: disk.min_free: "much" is not a size`)
	c.Problems = nil
	if diff := cmp.Diff(Load(Sources{}), c); diff != "" {
		t.Error(diff)
	}
}

func TestSizesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1073741824": 1 << 30, "1_000": 1000, "1GiB": 1 << 30, "1 gib": 1 << 30, "500MB": 500e6, "3kb": 3000, "12B": 12, "1024TiB": 1 << 50,
	} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q: %d, %v", text, b, err)
		}
		var again Bytes
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Errorf("%q is printed as %q, which is %d, %v", text, b, again, err)
		}
	}
	for _, text := range []string{"", "GiB", "-1", "1.5GiB", "1025TiB", "9223372036854775807KiB", "1GiBB", "0x10"} {
		b := Bytes(7)
		if err := b.UnmarshalText([]byte(text)); err == nil || b != 7 {
			t.Errorf("%q is %d", text, b)
		}
	}
}
