package yamlfile

import "strings"

// Nearest returns the candidate that was most likely meant by word, or "" if none is close. Case,
// and the difference between "_" and "-", do not count.
func Nearest(word string, candidates []string) string {
	w := fold(word)
	best, limit := "", len(w)/3
	if limit == 0 && len(w) > 1 {
		limit = 1
	}
	for _, c := range candidates {
		f := fold(c)
		if n := len(f) - len(w); n > limit || -n > limit {
			continue
		}
		if n := distance(w, f); n <= limit && c != word {
			best, limit = c, n-1
		}
	}
	if best == "" && len(w) >= 3 {
		for _, c := range candidates {
			if f := fold(c); c != word && (strings.HasPrefix(f, w) || len(f) >= 4 && strings.HasPrefix(w, f)) {
				return c
			}
		}
	}
	return best
}

func fold(s string) string {
	s = strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	return s[:min(len(s), 64)]
}

// distance counts the insertions, deletions and replacements of bytes, and the swaps of two
// neighbours, that make b from a.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, prev, prev2 := rows[i%3], rows[(i+2)%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, prev[j]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], prev2[j-2]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
