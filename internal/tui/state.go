package tui

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"

	"rnix/internal/durable"
	"rnix/types"
)

// stateVersion is the version of the form of ui-state.json. Part of the format.
const stateVersion = 1

// maxState is the longest ui-state.json in bytes that is read.
const maxState = 1 << 20

// state is the view as it is kept between starts: what somebody has set, not what was on the screen. Part of the format.
type state struct {
	V    int                        `json:"v"`
	Sort sortKey                    `json:"sort"`
	Desc bool                       `json:"desc"`
	Flat bool                       `json:"flat"`
	Only string                     `json:"filter,omitempty"`
	Pane string                     `json:"pane"`           // title
	Wide bool                       `json:"wide,omitempty"` // the right side alone
	Text bool                       `json:"text,omitempty"` // the mouse selects text
	Sel  types.UUID                 `json:"selected,omitzero"`
	Own  map[string]json.RawMessage `json:"panes,omitempty"` // what panes keep, by title
}

// keeper is a pane that keeps something between starts.
type keeper interface {
	keep() json.RawMessage
	// restore takes in what keep gave in an earlier run; it may be anything by now, and then nothing is done.
	restore(json.RawMessage)
}

// state returns what is to be kept.
func stateOf(m *Model) state {
	s := state{V: stateVersion, Sort: m.list.sort, Desc: m.list.desc, Flat: m.list.flat, Only: m.list.filter, Pane: m.pane().title(), Wide: m.wide, Text: !m.mouse, Sel: m.list.sel}
	for _, p := range m.panes {
		if k, ok := p.(keeper); ok {
			if raw := k.keep(); len(raw) > 0 {
				if s.Own == nil {
					s.Own = map[string]json.RawMessage{}
				}
				s.Own[p.title()] = raw
			}
		}
	}
	return s
}

// restore makes the view what it was.
func restore(m *Model, s *state) {
	if slices.Contains(sortKeys, s.Sort) {
		m.list.sort, m.list.desc = s.Sort, s.Desc
	}
	setFilter(m, s.Only)
	m.list.flat, m.wide, m.mouse, m.list.sel = s.Flat, s.Wide, !s.Text, s.Sel
	if m.wide && m.screen == dashboard {
		m.focus = right
	}
	for i, p := range m.panes {
		if p.title() == s.Pane {
			m.cur = i
		}
		if k, ok := p.(keeper); ok && s.Own[p.title()] != nil {
			k.restore(s.Own[p.title()])
		}
	}
}

// load reads the state of the view. A file that is no such thing is ignored, and the status line says so; it is replaced
// when the program ends.
func load(m *Model, path string) {
	s, err := readState(path)
	if err != nil {
		m.note = note{text: m.env.t.line("the view begins anew: " + err.Error()), bad: true}
		return
	}
	if s != nil {
		restore(m, s)
	}
}

// readState returns nil where there is no file.
func readState(path string) (*state, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxState:
		return nil, types.Errorf(types.ErrInvalid, "", path, "this is no state of a view")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := new(state)
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "", path, "%w", err)
	}
	if s.V < 1 || s.V > stateVersion {
		return nil, types.Errorf(types.ErrInvalid, "", path, "its version is %d, and %d is known", s.V, stateVersion)
	}
	return s, nil
}

// save writes the state of the view. It is a convenience: without it the next start begins anew.
func save(m *Model, path string) error {
	if path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(stateOf(m), "", "  ")
	if err != nil {
		return types.Errorf(types.ErrInternal, "", path, "%w", err)
	}
	return durable.WriteFile(durable.OS, path, append(raw, '\n'), durable.Cached)
}
