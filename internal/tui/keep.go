package tui

import (
	"encoding/json"
	"slices"
)

// What panes keep between starts: what somebody has set for all processes, not what was on the screen. The forms are part of that of
// ui-state.json.

// logKept is what the log keeps.
type logKept struct {
	Hidden   []category `json:"hidden,omitempty"`
	Syscalls bool       `json:"syscalls,omitempty"`
	Tree     bool       `json:"tree,omitempty"`
}

func (l *logPane) keep() json.RawMessage {
	k := logKept{Syscalls: l.calls, Tree: l.tree}
	for _, c := range hideable {
		if l.off[c] {
			k.Hidden = append(k.Hidden, c)
		}
	}
	return kept(k)
}

func (l *logPane) restore(raw json.RawMessage) {
	k, ok := keptIn[logKept](raw)
	if !ok {
		return
	}
	l.calls, l.tree = k.Syscalls, k.Tree
	for _, c := range hideable {
		l.off[c] = slices.Contains(k.Hidden, c)
	}
}

// costKept is what the costs keep.
type costKept struct {
	By  string `json:"by"`
	All bool   `json:"all,omitempty"`
}

func (p *costPane) keep() json.RawMessage { return kept(costKept{costBy[p.by], p.all}) }

func (p *costPane) restore(raw json.RawMessage) {
	if k, ok := keptIn[costKept](raw); ok {
		p.by, p.all = max(slices.Index(costBy, k.By), 0), k.All
	}
}

// traceKept is what the trace keeps.
type traceKept struct {
	Critical bool `json:"critical,omitempty"`
	Alone    bool `json:"alone,omitempty"`
}

func (p *tracePane) keep() json.RawMessage { return kept(traceKept{p.critical, p.alone}) }

func (p *tracePane) restore(raw json.RawMessage) {
	if k, ok := keptIn[traceKept](raw); ok {
		p.critical, p.alone = k.Critical, k.Alone
	}
}

func kept(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return raw
}

// keptIn reads what kept has written; false = it is something else.
func keptIn[T any](raw json.RawMessage) (k T, ok bool) {
	err := json.Unmarshal(raw, &k)
	return k, err == nil
}
