package daemon_test

import (
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// deviation says of some cells that they do not do yet what the model says: each of them. Values of an axis are separated by " | "; "" = all.
type deviation struct {
	verbs, namings, places, families string
	finding                          string        // its ID, and what happens
	code                             types.ErrCode // how it is refused; "" = it is accepted
}

// deviations are what is wrong today; nothing is. Who mends one takes its line out.
var deviations []deviation

// has reports whether a deviation is one of a cell.
func (d *deviation) has(c square) bool {
	for _, axis := range [][2]string{{d.verbs, c.verb}, {d.namings, c.naming}, {d.places, c.place}, {d.families, c.family}} {
		if axis[0] != "" && !slices.Contains(strings.Split(axis[0], " | "), axis[1]) {
			return false
		}
	}
	return true
}

// findingOf returns the deviation of a cell; nil = it has none.
func findingOf(c square) *deviation {
	for i := range deviations {
		if deviations[i].has(c) {
			return &deviations[i]
		}
	}
	return nil
}

func TestMatrixDeviationsAreOfCellsThatThereAre(t *testing.T) {
	cells := matrixCells()
	for i := range deviations {
		if !slices.ContainsFunc(cells, deviations[i].has) {
			t.Errorf("no cell is meant by %+v", deviations[i])
		}
	}
	for _, c := range cells {
		if i := slices.IndexFunc(deviations, func(d deviation) bool { return d.has(c) }); i >= 0 {
			if j := slices.IndexFunc(deviations[i+1:], func(d deviation) bool { return d.has(c) }); j >= 0 {
				t.Errorf("%s is in two lines: %q and %q", c, deviations[i].finding, deviations[i+1+j].finding)
			}
		}
	}
}

// The short form leaves out no value of an axis, and none together with any of another axis where there is such a cell.
func TestMatrixOfPairsHasEachPairAndEachDeviation(t *testing.T) {
	cells := matrixCells()
	picked := pairwise(cells)
	if len(picked) > len(cells)/10 {
		t.Errorf("%d of %d cells are many for the short form", len(picked), len(cells))
	}
	met := map[pair]bool{}
	for _, c := range picked {
		for _, p := range c.pairs() {
			met[p] = true
		}
	}
	for _, c := range cells {
		for _, p := range c.pairs() {
			if !met[p] {
				t.Errorf("%q with %q is left out", p[0], p[1])
			}
		}
	}
	for i := range deviations {
		if !slices.ContainsFunc(picked, deviations[i].has) {
			t.Errorf("%+v is left out", deviations[i])
		}
	}
}
