package soak

import (
	"slices"
	"testing"
)

func TestCellsHaveEachRowAndEachColumn(t *testing.T) {
	for _, c := range []struct{ rows, columns []string }{
		{[]string{"a", "b", "c"}, []string{"1", "2"}},
		{[]string{"a"}, []string{"1", "2", "3"}},
		{[]string{"a", "b"}, []string{"1", "2"}},
		{[]string{"a"}, []string{"1"}},
		{nil, []string{"1"}},
	} {
		for _, on := range []string{"", "1"} {
			t.Setenv(Env, on)
			cells := Cells(t, "cells", c.rows, c.columns)
			want := max(len(c.rows), len(c.columns))
			if on != "" || len(c.rows) == 0 {
				want = len(c.rows) * len(c.columns)
			}
			if len(cells) != want {
				t.Errorf("%v × %v: %v", c.rows, c.columns, cells)
			}
			for i, list := range [][]string{c.rows, c.columns} {
				for _, name := range list {
					if want > 0 && !slices.ContainsFunc(cells, func(cell [2]string) bool { return cell[i] == name }) {
						t.Errorf("%s is not in %v", name, cells)
					}
				}
			}
		}
	}
}
