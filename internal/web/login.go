package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// How many links that were not used, and how many sessions, there may be; the oldest go first.
const (
	maxTokens   = 8
	maxSessions = 32
)

// keyHeader carries the key of a session. No form can send it, and no page of another site without being asked.
const keyHeader = "Rnix-Key"

// sum is what is kept of a secret.
type sum = [sha256.Size]byte

// link is one that was not used.
type link struct {
	token sum
	gone  chan struct{} // closed when it is used, or given up for newer ones
}

// session is one browser that was let in. Its fields are guarded by the lock of doors.
type session struct {
	cookie, key sum
	used        time.Time
	calls       int // under way
}

// doors owns who may come in.
type doors struct {
	cookie string // the name: ports share cookies, so each has its own

	mu sync.Mutex
	// +checklocks:mu
	links    []link     // the oldest first
	sessions []*session // +checklocks:mu
	// +checklocks:mu
	calls int // under way, also of sessions that have ended
}

func newDoors(cookie string) *doors { return &doors{cookie: cookie} }

// secret returns what nobody can guess, and what is kept of it.
func secret() (string, sum) {
	text := rand.Text() + rand.Text()
	return text, sha256.Sum256([]byte(text))
}

// token returns a new token for a link, and what is closed when it is good no more.
func (d *doors) token() (text string, gone <-chan struct{}) {
	text, s := secret()
	n := link{s, make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.links) >= maxTokens {
		close(d.links[0].gone)
		d.links = slices.Delete(d.links, 0, 1)
	}
	d.links = append(d.links, n)
	return text, n.gone
}

// admit takes a token, which is good once, and returns the secrets of a new session.
func (d *doors) admit(token string, now time.Time) (cookie, key string, ok bool) {
	s := sha256.Sum256([]byte(token))
	d.mu.Lock()
	defer d.mu.Unlock()
	at := slices.IndexFunc(d.links, func(l link) bool { return same(l.token, s) })
	if at < 0 {
		return "", "", false
	}
	close(d.links[at].gone)
	d.links = slices.Delete(d.links, at, at+1)
	n := &session{used: now}
	cookie, n.cookie = secret()
	key, n.key = secret()
	if len(d.sessions) >= maxSessions {
		oldest := 0
		for i := range d.sessions {
			if d.sessions[i].used.Before(d.sessions[oldest].used) {
				oldest = i
			}
		}
		d.sessions = slices.Delete(d.sessions, oldest, oldest+1)
	}
	d.sessions = append(d.sessions, n)
	return cookie, key, true
}

// find returns the session of which a request has both secrets, or nil.
//
// +checklocks:d.mu
func (d *doors) find(r *http.Request) *session {
	key := sha256.Sum256([]byte(r.Header.Get(keyHeader)))
	for _, c := range r.CookiesNamed(d.cookie) {
		cookie := sha256.Sum256([]byte(c.Value))
		for _, s := range d.sessions {
			if same(s.cookie, cookie) && same(s.key, key) {
				return s
			}
		}
	}
	return nil
}

// end ends the session of a request, and reports whether there was one.
func (d *doors) end(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.find(r)
	d.sessions = slices.DeleteFunc(d.sessions, func(t *session) bool { return t == s })
	return s != nil
}

// hasCookie reports whether a request has the cookie of a session, which lets in nobody by itself.
func (d *doors) hasCookie(r *http.Request) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range r.CookiesNamed(d.cookie) {
		cookie := sha256.Sum256([]byte(c.Value))
		if slices.ContainsFunc(d.sessions, func(s *session) bool { return same(s.cookie, cookie) }) {
			return true
		}
	}
	return false
}

func same(a, b sum) bool { return subtle.ConstantTimeCompare(a[:], b[:]) == 1 }

// login exchanges the token of a link for a session, and leads away from the link. The key travels behind the #,
// which no browser sends anywhere; the page takes it from there.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodGet: // what only looks whether a link is good must not use it up
		w.Header().Set("Allow", "GET")
		plain(w, http.StatusMethodNotAllowed, "open the link in a browser")
		return
	case strings.Contains(r.Header.Get("Sec-Purpose")+r.Header.Get("Purpose"), "prefetch"):
		plain(w, http.StatusForbidden, "not before a person opens it")
		return
	}
	cookie, key, ok := s.doors.admit(r.URL.Query().Get("token"), time.Now())
	if !ok {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write(deadLink) // a browser that has left needs no answer
		return
	}
	http.SetCookie(w, s.doors.baked(cookie, 0))
	w.Header().Set("Location", "/#key="+key)
	w.WriteHeader(http.StatusSeeOther)
}

// logout ends the session of a page.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", "POST")
		plain(w, http.StatusMethodNotAllowed, "POST it")
	case !s.doors.end(r):
		refuse(w, http.StatusUnauthorized, errStranger)
	default:
		http.SetCookie(w, s.doors.baked("", -1))
		w.WriteHeader(http.StatusNoContent)
	}
}

// baked returns the cookie; with age -1, what removes it. It is gone when the browser is closed.
func (d *doors) baked(value string, age int) *http.Cookie {
	return &http.Cookie{Name: d.cookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode}
}

// deadLink is the page for a link that is not good.
var deadLink = []byte(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>This link is used up - Rnix</title><link rel="stylesheet" href="/app.css"></head>
<body class="notice"><main><h1>This link is used up, or was never good</h1>
<p>Each link lets one browser in, once.</p>
<ul><li>In the terminal where <code>rnix web</code> runs, press Enter: it shows a new link.</li>
<li>If that terminal is gone, or the program does not run any more: <code>rnix web</code> starts it again and shows one.</li>
<li>If this browser was let in before: <a href="/">go on to the dashboard</a>.</li></ul></main></body></html>
`)
