package controlplane

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/durable"
	"rnix/runtime/journal"
	"rnix/types"
)

// Kinds of a session's journal. Part of the on-disk format and, as the names of what can be read, of the wire format.
const (
	kindClaim      = "claim"
	kindRelease    = "release"
	kindActivity   = "activity"
	kindDelta      = "token-delta"
	kindStatus     = "status"
	kindCompletion = "completion"
	kindInject     = "inject"
	kindStop       = "stop"
)

// told is what an owner has told: the body as it came, and under which token. Part of the on-disk format.
type told struct {
	EventID string          `json:"eventId,omitempty"`
	Token   uint64          `json:"token"`
	Worker  string          `json:"workerId,omitempty"`
	Body    json.RawMessage `json:"body"`
}

// claimDoc, releaseDoc and stopDoc are the data of their kinds. Part of the on-disk format.
type claimDoc struct {
	Owner string `json:"owner"`
	Token uint64 `json:"token"`
	Claim string `json:"claimId,omitempty"`
}

type releaseDoc struct {
	Token uint64 `json:"token"`
}

type stopDoc struct {
	Stop bool `json:"stop"`
}

// session is one session. What is below open is folded from its journal.
type session struct {
	server *Server
	id     string
	used   uint64 // guarded by Server.mu
	open   atomic.Bool

	mu sync.Mutex
	// Not loaded while nil.
	journal *journal.Journal // +checklocks:mu
	lease   lease            // +checklocks:mu
	// The last step-heartbeat; not kept on disk.
	beat time.Time // +checklocks:mu

	folded // +checklocks:mu
	// Event IDs, hashed.
	seen map[[16]byte]bool // +checklocks:mu
}

// folded is what the journal says besides the lease and the IDs.
type folded struct {
	bytes   int64
	counts  map[string]int
	claims  map[string]bool // IDs of claims
	injects injects
	stop    bool
	status  json.RawMessage // the last one
	done    json.RawMessage // the last completion
}

func newSession(s *Server, id string) *session { return &session{server: s, id: id} }

// with runs do while the session is loaded and its lock is held.
func (x *session) with(do func() error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.journal == nil {
		if err := x.loadLocked(); err != nil {
			return err
		}
	}
	err := do()
	if x.journal.Err() != nil { // the disk has failed: what is there is looked at anew the next time
		x.unloadLocked()
	}
	return err
}

// loadLocked opens the journal and folds it. A new session gets its name first.
//
// +checklocks:x.mu
func (x *session) loadLocked() error {
	x.server.mu.Lock()
	closed := x.server.closed
	x.server.mu.Unlock()
	if closed {
		return types.Errorf(types.ErrUnavailable, "Open", x.id, "the control plane is being stopped")
	}
	x.server.idle(x)
	opt := x.server.opt
	dir := x.server.dirOf(x.id)
	if err := durable.MkdirAll(opt.FS, dir); err != nil {
		return err
	}
	if err := durable.RemoveTemp(opt.FS, dir); err != nil {
		return err
	}
	var doc nameDoc
	path := filepath.Join(dir, nameFile)
	err := x.server.read(path, &doc, func() int { return doc.V })
	if errors.Is(err, types.ErrNotFound) {
		err = x.server.write(path, nameDoc{V: fileVersion, ID: x.id})
	}
	for _, d := range []string{filepath.Dir(dir), dir} { // the names, whoever made them
		if err == nil {
			err = fsyncDir(opt.FS, d)
		}
	}
	if err != nil {
		return err
	}
	j, err := journal.Open(journal.Options{Session: x.id, Dir: filepath.Join(dir, eventsDir), Source: "control-plane", FS: opt.FS, Logger: opt.Logger})
	if err != nil {
		return err
	}
	known := x.lease
	x.lease, x.seen, x.folded = lease{}, map[[16]byte]bool{}, folded{counts: map[string]int{}, claims: map[string]bool{}}
	for after := uint64(0); ; {
		events, err := j.Read(after, 1000)
		if err != nil || len(events) == 0 {
			if err == nil {
				break
			}
			j.Close()
			return err
		}
		for _, e := range events {
			if err := x.foldLocked(e); err != nil {
				j.Close()
				return err
			}
		}
		after = events[len(events)-1].Seq
	}
	if x.lease.token == known.token && !known.expires.IsZero() { // only the files were closed
		x.lease.expires = known.expires
	} else {
		x.lease.expires = opt.Now().Add(opt.TTL)
	}
	x.journal = j
	x.open.Store(true)
	return nil
}

// +checklocks:x.mu
func (x *session) unloadLocked() {
	if x.journal == nil {
		return
	}
	if err := x.journal.Close(); err != nil {
		x.server.opt.Logger.Warn("the journal of a session was closed with an error", "session", x.id, "error", err)
	}
	x.journal, x.seen, x.folded = nil, nil, folded{}
	x.open.Store(false)
}

// foldLocked adds one event to what is known. The one fold: of what is read and of what is written.
//
// +checklocks:x.mu
func (x *session) foldLocked(e journal.Event) error {
	x.bytes += int64(len(e.Data))
	x.counts[e.Kind]++
	var err error
	switch e.Kind {
	case kindClaim:
		var d claimDoc
		err = json.Unmarshal(e.Data, &d)
		x.lease = lease{owner: d.Owner, token: d.Token, claim: d.Claim}
		if d.Claim != "" {
			x.claims[d.Claim] = true
		}
	case kindRelease:
		var d releaseDoc
		if err = json.Unmarshal(e.Data, &d); d.Token == x.lease.token {
			x.lease.over = true
		}
	case kindStop:
		var d stopDoc
		err = json.Unmarshal(e.Data, &d)
		x.stop = d.Stop
	case kindInject:
		var d injectDoc
		err = json.Unmarshal(e.Data, &d)
		x.injects.fold(d)
	case kindActivity, kindDelta, kindStatus, kindCompletion:
		var d told
		err = json.Unmarshal(e.Data, &d)
		if d.EventID != "" {
			x.seen[seenKey(e.Kind, d.EventID)] = true
		}
		if e.Kind == kindStatus {
			x.status = d.Body
		}
		if e.Kind == kindCompletion {
			x.done = d.Body
		}
	case journal.KindGap: // tokens and IDs may be among what is gone: nobody may write what could be a second time
		return types.Errorf(types.ErrStorage, "Open", x.server.dirOf(x.id), "events of session %q are damaged: %s; put back a copy of the file", x.id, e.Data)
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Open", x.server.dirOf(x.id), "event %d of session %q: %w", e.Seq, x.id, err)
	}
	return nil
}

// seenKey stands for an event ID: 128 bits of a hash.
func seenKey(kind, id string) [16]byte {
	sum := sha256.Sum256([]byte(kind + "\x00" + id))
	return [16]byte(sum[:16])
}

// appendLocked makes events durable and folds them. The lease's time is not in the fold.
//
// +checklocks:x.mu
func (x *session) appendLocked(drafts ...journal.Draft) error {
	if len(drafts) == 0 {
		return nil
	}
	if x.bytes >= x.server.opt.MaxSessionBytes {
		return types.Errorf(types.ErrExhausted, "Write", x.id, "the session has %d MiB, which is the limit", x.bytes>>20)
	}
	events, err := x.journal.Append(background, drafts...)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := x.foldLocked(e); err != nil {
			return err
		}
	}
	return nil
}
