package step

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"rnix/internal/permit"
	"rnix/types"
)

// PastAsk is an ask with the answer that it got.
type PastAsk struct {
	Ask
	Answer Answered
	Time   time.Time // of the answer
}

// PastGrant is what was granted with an answer.
type PastGrant struct {
	permit.Grant
	Revoked time.Time // when it was taken back; zero = it was not
}

// PastAsks returns the asks of a history that were answered, in order of their answers, as far as it can be read. What was asked of its origin is not
// among those of a fork. grants are what was granted in this history, by the numbers of the asks: to a family the uppermost process of it is granted.
func PastAsks(records iter.Seq2[Record, error]) (out []PastAsk, grants map[uint64]PastGrant, err error) {
	var open []Ask
	grants = map[uint64]PastGrant{}
	own := uint64(1) // the first record that is none of an origin
	for r, err := range records {
		if code := types.CodeOf(err); code == types.ErrStorage || code == types.ErrInvalid {
			break
		} else if err != nil {
			return nil, nil, err
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
		pastGrant(grants, &r)
		a, ok := AnsweredBy(r.Marker)
		if i := slices.IndexFunc(open, func(k Ask) bool { return k.Number == a.Number }); ok && i >= 0 {
			out = append(out, PastAsk{open[i], a, r.Time})
			open = slices.Delete(open, i, i+1)
		}
	}
	return out, grants, nil
}

// pastGrant enters what a marker grants or takes back.
func pastGrant(grants map[uint64]PastGrant, r *Record) {
	var g permit.Grant
	var number uint64
	switch {
	case r.Marker.Name == MarkerGrant && json.Unmarshal(r.Marker.Detail, &g) == nil:
		grants[g.Number] = PastGrant{Grant: g}
	case r.Marker.Name == MarkerRevoke && json.Unmarshal(r.Marker.Detail, &number) == nil:
		if was, ok := grants[number]; ok {
			was.Revoked = r.Time
			grants[number] = was
		}
	}
}
