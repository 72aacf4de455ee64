package step

import (
	"iter"
	"slices"
	"time"

	"rnix/types"
)

// PastAsk is an ask with the answer that it got.
type PastAsk struct {
	Ask
	Answer Answered
	Time   time.Time // of the answer
}

// PastAsks returns the asks of a history that were answered, in order of their answers, as far as it can be read. What was asked of its origin is not
// among those of a fork.
func PastAsks(records iter.Seq2[Record, error]) ([]PastAsk, error) {
	var out []PastAsk
	var open []Ask
	own := uint64(1) // the first record that is none of an origin
	for r, err := range records {
		if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
			break
		} else if err != nil {
			return nil, err
		}
		if r.Marker == nil || r.Seq < own {
			continue
		}
		if r.Seq == 1 && r.Marker.Name == MarkerFork {
			l := Life{}
			if l.Apply(&r); l.Origin != nil {
				own = l.Origin.Records + 2
			}
		}
		if a, ok := Asked(r.Marker); ok {
			open = append(open, a)
		}
		a, ok := AnsweredBy(r.Marker)
		if i := slices.IndexFunc(open, func(k Ask) bool { return k.Number == a.Number }); ok && i >= 0 {
			out = append(out, PastAsk{open[i], a, r.Time})
			open = slices.Delete(open, i, i+1)
		}
	}
	return out, nil
}
