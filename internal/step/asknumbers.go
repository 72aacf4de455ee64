package step

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/internal/permit"
	"rnix/types"
)

// AskNumbers opens the counter of what persons are asked. It starts above what waits for an answer; if the counter is lost or damaged, above every number
// that a history has, and if some are archived or deleted, above every number that can have been handed out: nobody asks more than once a second, all in all.
func AskNumbers(l *Local) (*durable.Counter, error) {
	path := filepath.Join(l.dir, askFile)
	_, err := durable.ReadCounter(l.fs, path)
	lost := types.CodeOf(err) == types.ErrNotFound || errors.Is(err, durable.ErrNotCounter)
	highest := uint64(0)
	for _, info := range l.index.List() {
		for _, a := range info.Asks {
			highest = max(highest, believed(a.Number))
		}
		if lost {
			highest = max(highest, askedIn(l.fs, filepath.Join(Dir(l.dir, info.UUID), StepsFile)))
		}
	}
	if lost && (highest > 0 || errors.Is(err, durable.ErrNotCounter)) {
		if gone, err := l.gonePID(); err != nil || gone > 0 {
			highest = max(highest, uint64(time.Now().Unix()))
		}
	}
	c, mended, err := durable.MendCounter(l.fs, path, 1, highest+1)
	note(l, mended)
	return c, err
}

// believed is a number, or 0 if it is damaged.
func believed(n uint64) uint64 {
	if n >= durable.MaxCounter {
		return 0
	}
	return n
}

// askedIn returns the highest number of an ask or a grant in a record; what cannot be read has none.
func askedIn(fsys durable.FS, file string) (highest uint64) {
	f, err := fsys.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // it was only read
	r := bufio.NewReaderSize(f, 64<<10)
	for err == nil {
		var line []byte
		line, err = r.ReadBytes('\n')
		if bytes.Contains(line, []byte(`"ask"`)) || bytes.Contains(line, []byte(`"grant"`)) {
			highest = max(highest, askedBy(line))
		}
	}
	return highest
}

// askedBy returns the number of the ask or the grant that a line of a record tells of; 0 if it tells of none.
func askedBy(line []byte) uint64 {
	r, err := Decode(bytes.TrimRight(line, "\n"))
	if err != nil || r.Marker == nil {
		return 0
	}
	if a, ok := Asked(r.Marker); ok {
		return believed(a.Number)
	}
	var g permit.Grant
	if r.Marker.Name == MarkerGrant && json.Unmarshal(r.Marker.Detail, &g) == nil {
		return believed(g.Number)
	}
	return 0
}
