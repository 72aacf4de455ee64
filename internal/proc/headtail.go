package proc

import (
	"fmt"
	"os"
	"sync"

	"rnix/internal/durable"
)

// MaxOutputFile is how much of an output is written to its file, in bytes. A program that prints
// without end must not fill the disk.
const MaxOutputFile = 256 << 20

// slack is how many bytes more than it should an output may have to be kept whole, as long as that is little: to say what was
// left out takes as many.
const slack = 200

// HeadTail is a writer that keeps the first and the last bytes written to it. When it has to leave
// something out, the whole goes to a file. Safe for concurrent use; Close must be called.
type HeadTail struct {
	keep    int // of the head, and of the tail
	dir     string
	pattern string
	limit   int64

	mu    sync.Mutex
	total int64 // +checklocks:mu
	// +checklocks:mu
	head []byte // grows to keep, or to twice that and slack while nothing was left out
	// +checklocks:mu
	tail *Ring // nil while nothing was left out
	// +checklocks:mu
	file *os.File // nil if there is none, or after Close
	// +checklocks:mu
	path string // "" if there is none
	// +checklocks:mu
	written int64 // to the file
	// +checklocks:mu
	fileErr error // why the file is not whole

	quota int64 // of all files in dir, in bytes; 0 = none
	// +checklocks:mu
	looked int64 // how much was written when it was last looked how much the others take
	// +checklocks:mu
	full bool // the quota is used up
}

// quotaEvery is how many bytes are written between two looks at what the other files take, which others may be writing.
const quotaEvery = 1 << 20

// Quota bounds what the file may take together with all others that are in its directory, in bytes; what is over that is not
// kept. 0 = no bound. It is called before the first Write.
func (h *HeadTail) Quota(n int64) { h.quota = n }

// NewHeadTail returns a writer that keeps the first and the last keep bytes. Its file is made in dir,
// for the owner only, when it is needed, with a name after pattern as os.CreateTemp makes it; dir is
// made too. An empty dir means no file.
func NewHeadTail(keep int, dir, pattern string) *HeadTail {
	return &HeadTail{keep: keep, dir: dir, pattern: pattern, limit: MaxOutputFile}
}

// Write takes p. It never fails: a disk that does is reported by Text.
func (h *HeadTail) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total += int64(len(p))
	if h.tail == nil {
		h.head = append(h.head, p...)
		if len(h.head) > 2*h.keep+min(slack, h.keep/8) {
			h.overflowLocked()
		}
		return len(p), nil
	}
	_, _ = h.tail.Write(p) // a ring never fails
	h.saveLocked(p)
	return len(p), nil
}

// overflowLocked divides what was kept so far into head and tail, and begins the file.
//
// +checklocks:h.mu
func (h *HeadTail) overflowLocked() {
	if h.dir != "" {
		err := durable.MkdirAll(durable.OS, h.dir)
		if err == nil {
			h.file, err = os.CreateTemp(h.dir, h.pattern)
		}
		if h.fileErr = err; err == nil {
			h.path = h.file.Name()
		}
	}
	h.saveLocked(h.head)
	h.tail = NewRing(h.keep)
	_, _ = h.tail.Write(h.head[h.keep:]) // a ring never fails
	h.head = append([]byte(nil), h.head[:h.keep]...)
}

// +checklocks:h.mu
func (h *HeadTail) saveLocked(p []byte) {
	if h.file == nil || h.fileErr != nil {
		return
	}
	for len(p) > 0 && h.fileErr == nil {
		if h.quota > 0 && h.written >= h.looked {
			h.lookLocked()
		}
		piece := p[:min(int64(len(p)), h.limit-h.written, quotaEvery)]
		if len(piece) == 0 {
			return
		}
		n, err := h.file.Write(piece)
		h.written += int64(n)
		h.fileErr = err
		p = p[len(piece):]
	}
}

// lookLocked lowers the limit to what the quota has left.
//
// +checklocks:h.mu
func (h *HeadTail) lookLocked() {
	h.looked = h.written + quotaEvery
	entries, err := os.ReadDir(h.dir)
	if h.fileErr = err; err != nil {
		return
	}
	left := h.quota
	for _, e := range entries {
		if i, err := e.Info(); err == nil && i.Mode().IsRegular() {
			left -= i.Size()
		}
	}
	if most := h.written + max(0, left); most < min(h.limit, h.looked) {
		h.limit, h.full = most, true
	}
}

// Text returns what is kept as valid text. Where something was left out it says how many bytes, and
// where the whole is.
func (h *HeadTail) Text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tail == nil {
		return validText(h.head)
	}
	head, tail := cutEnd(h.head), cutStart(h.tail.Bytes())
	out := h.total - int64(len(head)) - int64(len(tail))
	where := ""
	switch {
	case h.fileErr != nil && h.path == "":
		where = fmt.Sprintf("; they could not be kept: %v", h.fileErr)
	case h.fileErr != nil:
		where = fmt.Sprintf("; the first %d bytes are in %s, the rest could not be written: %v", h.written, h.path, h.fileErr)
	case h.full && h.written < h.total:
		where = fmt.Sprintf("; the first %d bytes are in %s, and more are not kept: all outputs of this process may take %d bytes (disk.outputs)", h.written, h.path, h.quota)
	case h.path != "" && h.written < h.total:
		where = fmt.Sprintf("; the first %d bytes are in %s", h.written, h.path)
	case h.path != "":
		where = "; the whole output is in " + h.path
	}
	return fmt.Sprintf("%s\n[... %d of %d bytes left out%s ...]\n%s", validText(head), out, h.total, where, validText(tail))
}

// Total returns how many bytes were written.
func (h *HeadTail) Total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}

// File returns the path of the file, or "" if there is none.
func (h *HeadTail) File() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.path
}

// Close closes the file, which stays. What was kept can still be read.
func (h *HeadTail) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.file
	h.file = nil
	if f == nil {
		return nil
	}
	return f.Close()
}
