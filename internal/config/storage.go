package config

import "rnix/types"

// GCMode says what becomes of a history that is not kept any longer.
type GCMode string

// The modes.
const (
	GCArchive GCMode = "archive" // packed into one file, from which it can be put back
	GCDelete  GCMode = "delete"  // removed; a line says that it was there
)

// The defaults of what is kept.
const (
	DefaultRetentionDays     = 30
	DefaultMaxEntries        = 500
	DefaultGCInterval        = 3600     // seconds
	DefaultAutoResumeMax     = maxCount // all
	DefaultCheckpointSteps   = 5
	DefaultCheckpointSeconds = 30
	DefaultSnapshotBytes     = Bytes(1 << 30)
	DefaultSnapshotFiles     = 100_000

	minGCInterval = 60
	maxGCInterval = 366 * 24 * 3600
	maxDays       = 36_500 // a hundred years: no sum of times overflows
	maxCount      = 1_000_000_000
)

// GC says how long histories stay as they are. It is the user's only.
type GC struct {
	RetentionDays   Value[int]    // since the last event; 0 = no limit
	ArchiveDays     Value[int]    // that an archive stays; 0 = no limit
	MaxEntries      Value[int]    // histories that have ended; 0 = no limit
	IntervalSeconds Value[int]    // between two runs in the background, at least 60
	Mode            Value[GCMode] //
}

// Resume says what a daemon runs again when it starts. It is the user's only.
type Resume struct {
	Auto Value[bool] // daemon.auto_resume
	Max  Value[int]  // daemon.auto_resume_max: how many at one start at most, families whole; 0 = none
}

// Checkpoint says how often a checkpoint is written, whichever comes first. A project may only ask
// for more of them.
type Checkpoint struct {
	EverySteps   Value[int] // 0 = not by steps
	EverySeconds Value[int] // 0 = not by time; both 0 = no checkpoints
}

// Snapshots say whether the files of a workspace are kept at each step, and which workspaces are too
// large for it. They are the user's only.
type Snapshots struct {
	Enabled  Value[bool]
	MaxBytes Value[Bytes] // of a workspace; 0 = no limit
	MaxFiles Value[int]   // of a workspace; 0 = no limit
}

// Bytes is a size. It is written as a number of bytes or with a unit: 500MB, 1GiB.
type Bytes int64

// UnmarshalText reads a size that is not negative and at most 1024 TiB.
func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := types.ParseSize(string(text))
	if err == nil {
		*b = Bytes(n)
	}
	return err
}

// String returns the size in the largest unit that divides it.
func (b Bytes) String() string { return types.SizeText(int64(b)) }

// Short returns the size for people, in the largest unit that it fills.
func (b Bytes) Short() string { return types.SizeShort(int64(b)) }

// gcLayer and those below are the parts of config.yaml that say what is kept, as they are written.
type gcLayer struct {
	RetentionDays *int    `yaml:"retention_days"`
	ArchiveDays   *int    `yaml:"archive_days"`
	MaxEntries    *int    `yaml:"max_entries"`
	Interval      *int    `yaml:"interval_seconds"`
	Mode          *string `yaml:"mode"`
}

type daemonLayer struct {
	AutoResume    *bool `yaml:"auto_resume"`
	AutoResumeMax *int  `yaml:"auto_resume_max"`
}

type checkpointLayer struct {
	EverySteps   *int `yaml:"every_steps"`
	EverySeconds *int `yaml:"every_seconds"`
}

type snapshotsLayer struct {
	Enabled  *bool  `yaml:"enabled"`
	MaxBytes *Bytes `yaml:"max_bytes"`
	MaxFiles *int   `yaml:"max_files"`
}

// storageDefaults sets what nobody has said.
func (c *Config) storageDefaults() {
	c.GC = GC{
		RetentionDays:   Value[int]{DefaultRetentionDays, FromDefault},
		ArchiveDays:     Value[int]{0, FromDefault},
		MaxEntries:      Value[int]{DefaultMaxEntries, FromDefault},
		IntervalSeconds: Value[int]{DefaultGCInterval, FromDefault},
		Mode:            Value[GCMode]{GCArchive, FromDefault},
	}
	c.Resume = Resume{Auto: Value[bool]{true, FromDefault}, Max: Value[int]{DefaultAutoResumeMax, FromDefault}}
	c.Checkpoint = Checkpoint{
		EverySteps:   Value[int]{DefaultCheckpointSteps, FromDefault},
		EverySeconds: Value[int]{DefaultCheckpointSeconds, FromDefault},
	}
	c.Snapshots = Snapshots{
		Enabled:  Value[bool]{true, FromDefault},
		MaxBytes: Value[Bytes]{DefaultSnapshotBytes, FromDefault},
		MaxFiles: Value[int]{DefaultSnapshotFiles, FromDefault},
	}
	c.diskDefaults()
}

// readStorageEnv reads the variables of the keys that say what is kept.
func readStorageEnv(l *layer, v variables) {
	v.number("gc.retention_days", &l.GC.RetentionDays)
	v.number("gc.archive_days", &l.GC.ArchiveDays)
	v.number("gc.max_entries", &l.GC.MaxEntries)
	v.number("gc.interval_seconds", &l.GC.Interval)
	v.text("gc.mode", &l.GC.Mode)
	v.flag("daemon.auto_resume", &l.Daemon.AutoResume)
	v.number("daemon.auto_resume_max", &l.Daemon.AutoResumeMax)
	v.number("checkpoint.every_steps", &l.Checkpoint.EverySteps)
	v.number("checkpoint.every_seconds", &l.Checkpoint.EverySeconds)
	v.flag("snapshots.enabled", &l.Snapshots.Enabled)
	v.number("snapshots.max_files", &l.Snapshots.MaxFiles)
	parse(v, "snapshots.max_bytes", &l.Snapshots.MaxBytes)
	readDiskEnv(l, v)
}

// applyStorage takes over what a layer says about keeping.
func (c *Config) applyStorage(l layer, s sink) {
	s.between("gc.retention_days", l.GC.RetentionDays, 0, maxDays, &c.GC.RetentionDays)
	s.between("gc.archive_days", l.GC.ArchiveDays, 0, maxDays, &c.GC.ArchiveDays)
	s.between("gc.max_entries", l.GC.MaxEntries, 0, maxCount, &c.GC.MaxEntries)
	s.between("gc.interval_seconds", l.GC.Interval, minGCInterval, maxGCInterval, &c.GC.IntervalSeconds)
	if v := l.GC.Mode; v != nil && s.usersOnly("gc.mode") {
		if m := GCMode(*v); m == GCArchive || m == GCDelete {
			c.GC.Mode = Value[GCMode]{m, s.origin("gc.mode")}
		} else {
			s.problem("gc.mode", "%q is not known; write archive or delete", *v)
		}
	}
	s.truth("daemon.auto_resume", l.Daemon.AutoResume, &c.Resume.Auto)
	s.between("daemon.auto_resume_max", l.Daemon.AutoResumeMax, 0, maxCount, &c.Resume.Max)
	s.limit("checkpoint.every_steps", l.Checkpoint.EverySteps, &c.Checkpoint.EverySteps)
	s.limit("checkpoint.every_seconds", l.Checkpoint.EverySeconds, &c.Checkpoint.EverySeconds)
	s.truth("snapshots.enabled", l.Snapshots.Enabled, &c.Snapshots.Enabled)
	s.size("snapshots.max_bytes", l.Snapshots.MaxBytes, &c.Snapshots.MaxBytes)
	s.between("snapshots.max_files", l.Snapshots.MaxFiles, 0, maxCount, &c.Snapshots.MaxFiles)
	c.applyDisk(l, s)
}

// between takes over a number of the user's.
func (s sink) between(key string, v *int, low, high int, have *Value[int]) {
	switch {
	case v == nil || !s.usersOnly(key):
	case *v < low && low == 0:
		s.problem(key, "is negative; write 0 to switch it off")
	case *v < low || *v > high:
		s.problem(key, "%d must be between %d and %d", *v, low, high)
	default:
		*have = Value[int]{*v, s.origin(key)}
	}
}

// truth takes over a switch of the user's.
func (s sink) truth(key string, v *bool, have *Value[bool]) {
	if v != nil && s.usersOnly(key) {
		*have = Value[bool]{*v, s.origin(key)}
	}
}
