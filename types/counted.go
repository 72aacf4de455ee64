package types

import "strconv"

// Counted returns a number with the word for so many things: "1 line", "2 lines".
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
