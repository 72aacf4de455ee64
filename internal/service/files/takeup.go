package files

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/types"
)

// TakeUp brings up to date what an earlier daemon has left, before anything else is made: what names the data directory, if that was moved,
// directories that were put away with their histories, work trees of which no history was begun, and merges that were cut off. It returns what people should know of it.
func (s *Service) TakeUp(ctx context.Context) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	moveIn(ctx, s.Trees, s.Log, note)
	notes = append(notes, settle(ctx, s)...)
	s.Trees.sweep(ctx, s.Histories.Begun, note)
	return append(notes, s.Trees.git.SettleMerges(ctx)...)
}

// placeFile says where the data directory was when a daemon last used it. Part of the on-disk format.
const placeFile = "place"

// moveIn brings up to date what names the data directory and is no record, if that was moved since a daemon last used it.
// What cannot be is tried again at the next start.
func moveIn(ctx context.Context, t *Trees, log *slog.Logger, note func(format string, args ...any)) {
	path := filepath.Join(t.data, placeFile)
	was, _ := durable.ReadFile(durable.OS, path) // without it, or with another, we look
	if string(was) == t.data+"\n" {
		return
	}
	n, err := t.git.Moved(ctx)
	if n > 0 {
		note("this data directory was moved here; forks and git work trees that are used in their new place: %d", n)
	}
	if err != nil {
		note("this data directory was moved here, and these forks and git work trees cannot be used: %v", err)
		return
	}
	if err := durable.WriteFile(durable.OS, path, []byte(t.data+"\n"), durable.Durable); err != nil {
		log.Warn("the path of the data directory is not noted", "err", err) // the next start looks again
	}
}

// sweep removes work trees whose history was never begun: a crash came between. Nothing else may be
// making any yet.
func (t *Trees) sweep(ctx context.Context, begun func(types.UUID) bool, note func(format string, args ...any)) {
	ids, _ := t.all() // what cannot be read stays
	for _, id := range ids {
		if begun(id) {
			continue
		}
		if _, err := t.remove(ctx, id, false); err != nil {
			note("the work tree of a process that was never started stays in %s: %v", t.Home(id), err)
		}
	}
}
