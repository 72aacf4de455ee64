package config

// The defaults of the disk's room.
const (
	DefaultMinFree = Bytes(1 << 30)
	DefaultOutputs = Bytes(256 << 20)

	// minFreePart is the part of a disk that is kept free at most, unless somebody has said how much: on a small one a GiB may be
	// more than is ever free.
	minFreePart = 20
)

// Disk says how much of the disk agents leave free, and how much of it one may take. It is the user's only.
type Disk struct {
	// MinFree is how much stays free where the data directory is: with less, agents wait. 0 = they never do.
	MinFree Value[Bytes]
	Outputs Value[Bytes] // of what a process may keep of the outputs of its commands, in all; 0 = no limit
}

// Keep returns how many bytes of a disk of a size stay free.
func (d Disk) Keep(size int64) int64 {
	if d.MinFree.Origin == FromDefault {
		return min(int64(d.MinFree.V), size/minFreePart)
	}
	return int64(d.MinFree.V)
}

type diskLayer struct {
	MinFree *Bytes `yaml:"min_free"`
	Outputs *Bytes `yaml:"outputs"`
}

func (c *Config) diskDefaults() {
	c.Disk = Disk{Value[Bytes]{DefaultMinFree, FromDefault}, Value[Bytes]{DefaultOutputs, FromDefault}}
}

func readDiskEnv(l *layer, v variables) {
	parse(v, "disk.min_free", &l.Disk.MinFree)
	parse(v, "disk.outputs", &l.Disk.Outputs)
}

func (c *Config) applyDisk(l layer, s sink) {
	s.size("disk.min_free", l.Disk.MinFree, &c.Disk.MinFree)
	s.size("disk.outputs", l.Disk.Outputs, &c.Disk.Outputs)
}

// size takes over a size of the user's.
func (s sink) size(key string, v *Bytes, have *Value[Bytes]) {
	if v != nil && s.usersOnly(key) {
		*have = Value[Bytes]{*v, s.origin(key)}
	}
}
