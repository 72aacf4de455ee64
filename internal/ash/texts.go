package ash

import (
	"os"
	"strconv"
	"sync"

	"mvdan.cc/sh/v3/interp"
)

// maxKept is how many texts are kept for the places of errors, besides those that declare functions.
const maxKept = 512

// texts are the sources that were run, by number.
type texts struct {
	mu      sync.Mutex
	sources map[int]*source // +checklocks:mu
	last    int             // +checklocks:mu
	// +checklocks:mu
	lines int // the last one that came neither from eval nor from source
	// +checklocks:mu
	funcs map[string]int // names of functions, to their sources
	// +checklocks:mu
	loops map[string]*os.File // kept so that no other file gets the same address
}

// add keeps a source and gives it its number.
func (t *texts) add(src *source) *source {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sources == nil {
		t.sources, t.funcs, t.loops = map[int]*source{}, map[string]int{}, map[string]*os.File{}
	}
	t.last++
	src.id = t.last
	t.sources[src.id] = src
	for _, name := range src.funcs {
		t.funcs[name] = src.id
	}
	if old := t.sources[src.id-maxKept]; old != nil && len(old.funcs) == 0 && old.id > 1 {
		delete(t.sources, old.id)
	}
	return src
}

// main makes a source the one that code belongs to which says nothing else.
func (t *texts) main(src *source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = src.id
}

func (t *texts) get(id int) *source {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sources[id]
}

// of returns the source that a command comes from; an empty one if it is not known any more.
func (t *texts) of(hc *interp.HandlerContext) *source {
	id, err := strconv.Atoi(hc.Env.Get(varSource).String())
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		id = t.lines
	}
	if src := t.sources[id]; src != nil {
		return src
	}
	return &source{}
}

// function returns the source in which a function is declared, 0 if there is none of this name.
func (t *texts) function(name string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.funcs[name]
}

func (t *texts) functions() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for name := range t.funcs {
		out = append(out, name)
	}
	return out
}

// loop keeps the file that a loop reads.
func (t *texts) loop(id string, f *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loops[id] = f
}
