package tui

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"rnix/internal/price"
	"rnix/ipc"
)

// First returns the whole table of processes as it is now, in order of PID.
func First(ctx context.Context, src Source, all bool) (*ipc.ProcTable, error) {
	s, err := src.Open(ctx, ipc.WatchProcs.Name, ipc.WatchRequest{All: all, EveryMs: ipc.MaxWatchEvery})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	t := new(ipc.ProcTable)
	_, err = s.Next(t)
	return t, err
}

// Print writes the tables of top to a pipe or a terminal: the first one, and n-1 more, each after something has changed, at most
// one in a second. width is in cells; 0 = as wide as it gets.
func Print(ctx context.Context, w io.Writer, src Source, t *Theme, all bool, width, n int) error {
	s, err := src.Open(ctx, ipc.WatchProcs.Name, ipc.WatchRequest{All: all, EveryMs: int(time.Second / time.Millisecond)})
	if err != nil {
		return err
	}
	defer s.Close()
	m := &Model{env: &env{t: t, now: time.Now}, screen: top, all: all, list: list{sort: byPID}}
	for i := 0; i < n; {
		f := new(ipc.ProcTable)
		missed, err := s.Next(f)
		switch {
		case err != nil:
			return err
		case missed != nil: // a whole frame follows
			continue
		}
		m.rows.fold(f, m.list.sel)
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		var families ipc.FamiliesResponse // of an earlier daemon there are none
		_ = src.Call(ctx, ipc.Families.Name, ipc.FamiliesRequest{All: all}, &families)
		var calls ipc.ProviderCallsResponse
		_ = src.Call(ctx, ipc.ProviderTraffic.Name, ipc.Empty{}, &calls)
		below := append(trafficLines(t, calls.Providers, time.Now()), familyRoots(m.rows.by, families.Families)...)
		if err := printTable(m, w, width, below); err != nil {
			return err
		}
		i++
	}
	return nil
}

// printTable writes the table of the rows as they are now, and what stands below it.
func printTable(m *Model, w io.Writer, width int, below []string) error {
	t, now := m.env.t, m.env.now()
	m.list.arrange(&m.rows, now)
	m.list.at = -1 // nothing stands out
	if width <= 0 {
		name := 0
		for i := range m.list.entries {
			name = max(name, t.cells(t.branch(&m.list.entries[i])+t.name(m.list.entries[i].row)))
		}
		width = 140 + min(name, 160)
	}
	lines := []string{t.cut(header(m, width), width)}
	if len(m.list.entries) > 0 {
		cols := fitColumns(t, columns(), m.list.entries, width, now)
		lines = append(lines, t.paint(bold, t.cut(columnNames(m, cols), width)))
		for i := range m.list.entries {
			lines = append(lines, tableRow(m, cols, &m.list.entries[i], i, width))
		}
	}
	lines = append(lines, below...)
	if why := noPrices(t, m.list.entries); why != "" {
		lines = append(lines, why)
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(w, strings.TrimRight(l, " ")); err != nil {
			return err
		}
	}
	return nil
}

// noPrices explains the "?" of a cost; empty = all prices are known.
func noPrices(t *Theme, entries []entry) string {
	var models []string
	for i := range entries {
		for _, m := range entries[i].row.UnpricedModels {
			if m = t.line(m); !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	if len(models) == 0 {
		return ""
	}
	return price.Missing(models)
}

// totals is what the header says of all processes.
func totals(c ipc.Totals) []string {
	parts := []string{plural(c.Running, "running", "running")}
	for _, p := range []struct {
		n    int
		word string
	}{{c.Waiting, "waiting"}, {c.Suspended, "suspended"}, {c.Failed, "failed"}} {
		if p.n > 0 {
			parts = append(parts, number(p.n)+" "+p.word)
		}
	}
	parts = append(parts, number(c.Tokens)+" tokens")
	if c.Tokens > 0 || c.CostUSD > 0 {
		parts = append(parts, price.Spent(c.CostUSD, c.Tokens, c.Unpriced))
	}
	return parts
}
