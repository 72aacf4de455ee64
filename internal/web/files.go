package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"sync"
	"time"
)

// The files of the page, made by build.sh and checked in.
//
//go:embed dist
var dist embed.FS

// file is one static file. There is no secret in any of them, so they need no session: a link from anywhere to
// somewhere in the dashboard can be followed, and the page then says who may come in.
type file struct {
	path string // of the URL, as ServeMux has it
	name string // in dist
	kind string
	body []byte
	etag string
}

// files are all of them; made when the first is asked for, since most commands serve none.
var files = sync.OnceValue(func() []*file {
	return []*file{
		load("/{$}", "index.html", "text/html; charset=utf-8"),
		load("/app.js", "app.js", "text/javascript; charset=utf-8"),
		load("/app.css", "app.css", "text/css; charset=utf-8"),
		load("/icon.svg", "icon.svg", "image/svg+xml"),
		load("/licenses.txt", "licenses.txt", "text/plain; charset=utf-8"),
	}
})

func load(path, name, kind string) *file {
	b, err := dist.ReadFile("dist/" + name)
	if err != nil {
		panic("internal/web: " + name + " is not in the program: " + err.Error()) // it was compiled without dist
	}
	h := sha256.Sum256(b)
	return &file{path, name, kind, b, `"` + hex.EncodeToString(h[:12]) + `"`}
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		plain(w, http.StatusMethodNotAllowed, "a file can only be read")
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // kept, but asked for each time: a new program has a new page
	h.Set("ETag", f.etag)
	http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.body))
}
