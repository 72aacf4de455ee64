// Package controlplane is the other side of the runtime packages' wire: an HTTP handler that says who owns
// a session, and keeps what its owner tells. For each session there is at most one owner at a time, with a fencing
// token that grows with each; who comes with an old one is refused.
//
// It owns leases, messages to sessions, and the order in which things were told. What it has answered with success is on
// the disk, in a journal for each session. It does not run anything, and trusts whoever has a token.
//
// Locks: session.mu > Server.mu. session.mu is held while that session's journal is written: the check of a token and
// the write are one.
package controlplane

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"rnix/internal/durable"
	"rnix/types"
)

// Defaults of Options.
const (
	DefaultTTL             = time.Minute
	DefaultMaxSessions     = 10_000
	DefaultMaxSessionBytes = 256 << 20
)

// Options say where a control plane keeps what it knows. Dir is required.
type Options struct {
	Dir    string           // its own; it is made if it is missing
	FS     durable.FS       // nil = the file system of the machine
	Logger *slog.Logger     // nil = slog.Default
	Now    func() time.Time // nil = time.Now
	TTL    time.Duration    // how long a lease is good without a refresh; 0 = 1 min
	// MaxSessions and MaxSessionBytes bound what is kept; what is too much is answered with 507 and kept by who tells it.
	// 0 = 10 000 sessions, 256 MiB each.
	MaxSessions     int
	MaxSessionBytes int64
	// MaxOpen is how many sessions have their files open; 0 = 256.
	MaxOpen int
}

// Server is a control plane. Safe for concurrent use. Close it when no request is under way.
type Server struct {
	opt  Options
	lock io.Closer
	mux  *http.ServeMux

	mu sync.Mutex
	// Hashes of the tokens that are accepted.
	tokens [][sha256.Size]byte // +checklocks:mu
	// By ID.
	sessions map[string]*session // +checklocks:mu
	// Counts uses of sessions.
	used   uint64 // +checklocks:mu
	closed bool   // +checklocks:mu
}

// fileVersion is the newest form of the small files. Part of the on-disk format.
const fileVersion = 1

// Names in the directory. Part of the on-disk format.
const (
	lockFile    = ".lock"
	tokensFile  = "tokens.json"
	sessionsDir = "sessions"
	nameFile    = "session.json"
	eventsDir   = "events"
)

// nameDoc is session.json: the directory's name is a hash of the ID.
type nameDoc struct {
	V  int    `json:"v"`
	ID string `json:"id"`
}

// tokensDoc is tokens.json.
type tokensDoc struct {
	V      int      `json:"v"`
	SHA256 []string `json:"sha256"`
}

// Open opens the directory, which belongs to one process at a time: CONFLICT names who has it. Leases that were held
// are taken to have been renewed now, since nobody knows when they were.
func Open(opt Options) (*Server, error) {
	if opt.Dir == "" {
		return nil, types.Errorf(types.ErrInvalid, "Open", "", "a control plane needs a directory")
	}
	if opt.FS == nil {
		opt.FS = durable.OS
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.TTL <= 0 {
		opt.TTL = DefaultTTL
	}
	if opt.MaxSessions <= 0 {
		opt.MaxSessions = DefaultMaxSessions
	}
	if opt.MaxSessionBytes <= 0 {
		opt.MaxSessionBytes = DefaultMaxSessionBytes
	}
	if opt.MaxOpen <= 0 {
		opt.MaxOpen = 256
	}
	s := &Server{opt: opt}
	if err := durable.MkdirAll(opt.FS, filepath.Join(opt.Dir, sessionsDir)); err != nil {
		return nil, err
	}
	lock, err := opt.FS.Lock(filepath.Join(opt.Dir, lockFile))
	if errors.Is(err, types.ErrConflict) {
		return nil, types.Errorf(types.ErrConflict, "Open", "", "%w; stop that one, or choose another directory", err)
	}
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	s.routes()
	return s, nil
}

// load reads the tokens and the names of the sessions.
func (s *Server) load() error {
	fsys := s.opt.FS
	if err := durable.RemoveTemp(fsys, s.opt.Dir); err != nil {
		return err
	}
	var tokens tokensDoc
	err := s.read(filepath.Join(s.opt.Dir, tokensFile), &tokens, func() int { return tokens.V })
	if err != nil && !errors.Is(err, types.ErrNotFound) {
		return err
	}
	var hashes [][sha256.Size]byte
	for _, text := range tokens.SHA256 {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != sha256.Size {
			return types.Errorf(types.ErrStorage, "Open", filepath.Join(s.opt.Dir, tokensFile), "%q is not a SHA-256 sum; remove it", text)
		}
		hashes = append(hashes, [sha256.Size]byte(b))
	}
	dir := filepath.Join(s.opt.Dir, sessionsDir)
	for _, d := range []string{filepath.Dir(s.opt.Dir), s.opt.Dir, dir} { // who made them may have been killed before it did this
		if err := fsyncDir(fsys, d); err != nil {
			return err
		}
	}
	if err := durable.RemoveTemp(fsys, dir); err != nil {
		return err
	}
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return types.Errorf(types.ErrStorage, "Open", dir, "%w", err)
	}
	sessions := map[string]*session{}
	for _, e := range entries {
		var doc nameDoc
		err := s.read(filepath.Join(dir, e.Name(), nameFile), &doc, func() int { return doc.V })
		if errors.Is(err, types.ErrNotFound) {
			err = s.unnamed(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		sessions[doc.ID] = newSession(s, doc.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens, s.sessions = hashes, sessions
	return nil
}

// unnamed removes a session that was never begun: nobody was told of it.
func (s *Server) unnamed(dir string) error {
	if _, err := s.opt.FS.Stat(filepath.Join(dir, eventsDir)); err == nil {
		return types.Errorf(types.ErrStorage, "Open", filepath.Join(dir, nameFile), "is missing beside events: it says to which session they belong; put it back, or move the directory away")
	}
	return durable.RemoveDir(s.opt.FS, dir)
}

func fsyncDir(fsys durable.FS, dir string) error {
	if err := fsys.SyncDir(dir); err != nil {
		return types.Errorf(types.ErrStorage, "Open", dir, "%w", err)
	}
	return nil
}

func (s *Server) read(path string, doc any, version func() int) error {
	b, err := durable.ReadFile(s.opt.FS, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, doc); err != nil {
		return types.Errorf(types.ErrStorage, "Open", path, "is damaged: %w; put back a copy, or move it away", err)
	}
	if version() > fileVersion {
		return types.Errorf(types.ErrVersion, "Open", path, "has format version %d, this program reads up to %d: use the newer program", version(), fileVersion)
	}
	return nil
}

func (s *Server) write(path string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Write", path, "%w", err)
	}
	return durable.WriteFile(s.opt.FS, path, append(b, '\n'), durable.Durable)
}

// dirOf returns the directory of a session. IDs are anybody's text, so they are no names of files.
func (s *Server) dirOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(s.opt.Dir, sessionsDir, hex.EncodeToString(sum[:]))
}

// checkID refuses what is no name that a person could read back.
func checkID(id string) error {
	switch {
	case id == "" || id == "." || id == "..", len(id) > 256, !utf8.ValidString(id), strings.ContainsFunc(id, unicode.IsControl):
		return types.Errorf(types.ErrInvalid, "Session", "", "the ID of a session has 1 to 256 bytes of printable text")
	}
	return nil
}

// session returns a session, which is made if it is missing and create is set. NOT_FOUND, INVALID, RESOURCE_EXHAUSTED.
func (s *Server) session(id string, create bool) (*session, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	switch {
	case s.closed:
		return nil, types.Errorf(types.ErrUnavailable, "Session", id, "the control plane is being stopped")
	case x == nil && !create:
		return nil, types.Errorf(types.ErrNotFound, "Session", id, "no such session; a claim makes it")
	case x == nil && len(s.sessions) >= s.opt.MaxSessions:
		return nil, types.Errorf(types.ErrExhausted, "Session", id, "there are %d sessions, which is the limit", len(s.sessions))
	case x == nil:
		x = newSession(s, id)
		s.sessions[id] = x
	}
	s.used++
	x.used = s.used
	return x, nil
}

// listed returns the IDs of all sessions.
func (s *Server) listed() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.sessions))
	for id := range s.sessions {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// idle closes the files of the session that was not used for longest, if too many are open. busy is left alone.
func (s *Server) idle(busy *session) {
	s.mu.Lock()
	var open []*session
	for _, x := range s.sessions {
		if x.open.Load() && x != busy {
			open = append(open, x)
		}
	}
	if len(open) < s.opt.MaxOpen {
		s.mu.Unlock()
		return
	}
	oldest := slices.MinFunc(open, func(a, b *session) int { return int(a.used) - int(b.used) })
	s.mu.Unlock()
	if oldest.mu.TryLock() { // one that is in use stays
		defer oldest.mu.Unlock()
		oldest.unloadLocked() // +checklocksforce: TryLock has taken it
	}
}

// Close closes all files.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	all := make([]*session, 0, len(s.sessions))
	for _, x := range s.sessions {
		all = append(all, x)
	}
	s.mu.Unlock()
	for _, x := range all {
		x.mu.Lock()
		x.unloadLocked()
		x.mu.Unlock()
	}
	return s.lock.Close()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// background is the context of what must be whole once it is begun: a client that goes away does not stop a write.
var background = context.Background()
