package debug

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// Summary counts syscalls. The zero value is empty. It is not safe for concurrent use.
type Summary struct {
	rows  map[callName]*SummaryRow
	begun map[callID]*SummaryRow // those that have begun and not ended
}

type callName struct{ call, path string }

// callID is a syscall that has begun: no PID is used twice, and a daemon numbers events without a gap.
type callID struct {
	pid types.PID
	seq uint64
}

// SummaryRow is what the syscalls of one name on one device took.
type SummaryRow struct {
	Call   string `json:"call"`
	Path   string `json:"path,omitempty"` // of the device
	Calls  int    `json:"calls"`
	Errors int    `json:"errors"`
	// Unfinished are the calls that have begun and not ended. They are not among Calls.
	Unfinished int           `json:"unfinished,omitempty"`
	Total      time.Duration `json:"total_ns"`
	Mean       time.Duration `json:"mean_ns"`
	Max        time.Duration `json:"max_ns"`
	Share      float64       `json:"share"` // of the time of all rows, 0 to 1
}

// Add counts an event, if it tells of a syscall.
func (s *Summary) Add(e *event.Event) {
	if !OfSyscall(e) {
		return
	}
	r := s.row(callName{e.Name, pathClass(e.Path)})
	if e.Kind == event.SyscallBegun {
		r.Unfinished++
		s.begun[callID{e.PID, e.Seq}] = r
		return
	}
	if was := s.begun[callID{e.PID, e.Begin}]; was != nil {
		was.Unfinished--
		delete(s.begun, callID{e.PID, e.Begin})
	}
	d := max(e.Dur, 0)
	r.Calls++
	r.Total += d
	r.Max = max(r.Max, d)
	if Failed(e) {
		r.Errors++
	}
}

func (s *Summary) row(name callName) *SummaryRow {
	if s.rows == nil {
		s.rows, s.begun = map[callName]*SummaryRow{}, map[callID]*SummaryRow{}
	}
	r := s.rows[name]
	if r == nil {
		r = &SummaryRow{Call: name.call, Path: name.path}
		s.rows[name] = r
	}
	return r
}

// Orders are the orders that Rows knows.
func Orders() []string { return []string{"time", "calls", "errors", "mean", "max", "name"} }

// Rows returns what was counted, in one of the Orders: the largest first, names from a to z.
func (s *Summary) Rows(order string) []SummaryRow {
	out := make([]SummaryRow, 0, len(s.rows))
	var whole time.Duration
	for _, r := range s.rows {
		whole += r.Total
	}
	for _, r := range s.rows {
		row := *r
		row.Mean = row.Total / time.Duration(max(row.Calls, 1))
		if whole > 0 {
			row.Share = float64(row.Total) / float64(whole)
		}
		out = append(out, row)
	}
	by := func(a, b *SummaryRow) int {
		switch order {
		case "calls":
			return cmp.Compare(b.Calls, a.Calls)
		case "errors":
			return cmp.Compare(b.Errors, a.Errors)
		case "mean":
			return cmp.Compare(b.Mean, a.Mean)
		case "max":
			return cmp.Compare(b.Max, a.Max)
		case "name":
			return 0
		}
		return cmp.Compare(b.Total, a.Total)
	}
	slices.SortFunc(out, func(a, b SummaryRow) int {
		return cmp.Or(by(&a, &b), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// pathClass returns the device of a path: its first two elements, and of the servers of all processes the name.
func pathClass(path string) string {
	if rest, ok := strings.CutPrefix(path, "/mnt/mcp/"); ok {
		name, _, _ := strings.Cut(rest, "/")
		if _, server, ok := strings.Cut(name, "-"); ok {
			name = server
		}
		return "/mnt/mcp/*-" + name
	}
	if strings.HasPrefix(path, "/proc/") {
		return "/proc"
	}
	n := 0
	for i := range len(path) {
		if path[i] == '/' && i > 0 {
			if n++; n == 2 {
				return path[:i]
			}
		}
	}
	return path
}
