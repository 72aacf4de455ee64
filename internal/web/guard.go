package web

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// policy is what the page may do: load and call what this server has, and nothing else. There are no inline scripts
// and no inline styles, so text that ended up as markup by a mistake would do nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// guard lets requests through that call this machine by a name of its own and do not come from a page of another
// site, and gives every answer the headers that bound what a browser does with it.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctl := http.NewResponseController(w)
		_ = ctl.SetReadDeadline(time.Now().Add(s.patience))    // also of who is refused: net/http reads the body first
		_ = ctl.SetWriteDeadline(time.Now().Add(stallTimeout)) // the last answer on this connection had another one
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), usb=(), payment=()")
		h.Set("Cache-Control", "no-store")
		switch {
		case !slices.Contains(s.hosts, strings.ToLower(r.Host)):
			// A name that was made to lead here: the page of another site.
			plain(w, http.StatusForbidden, "call this server "+s.hosts[0]+" or "+s.hosts[1])
		case !s.ownPage(r), cross.Check(r) != nil:
			plain(w, http.StatusForbidden, "pages of other sites may not call this server")
		case s.crowdedOut(w, r):
			h.Set("Retry-After", "5")
			plain(w, http.StatusServiceUnavailable, "too many connections are open; try again in a moment")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// ownPage reports whether a request may come from where it says: from a page of this very address, or from no page at
// all. Another site may only lead a person here (a link), which changes nothing and reads nothing.
func (s *Server) ownPage(r *http.Request) bool {
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !strings.EqualFold(origins[0], "http://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none": // "": no browser; "none": a person typed it, or opened a bookmark
		return true
	}
	return r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// plain answers with a line of text.
func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a browser that has left needs no answer
}
