package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"rnix/debug"
	"rnix/types"
)

// oneLine returns text clean and on one line, its blanks single.
func oneLine(text string) string {
	const enough = 4096 // bytes; nothing longer fits any line
	if len(text) > enough {
		text = text[:enough]
	}
	return strings.Join(strings.Fields(debug.Sanitize(text)), " ")
}

// cells returns how many columns of a terminal text takes.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case wide(r):
		return 2
	}
	return 1
}

// wide reports whether r takes two columns: the East Asian wide characters and the pictures.
func wide(r rune) bool {
	switch {
	case r < 0x1100:
		return false
	case r <= 0x115f, r == 0x231a, r == 0x231b, r == 0x2329, r == 0x232a, r >= 0x23e9 && r <= 0x23ec, r == 0x23f0, r == 0x23f3,
		r == 0x25fd, r == 0x25fe, r == 0x2614, r == 0x2615, r >= 0x2648 && r <= 0x2653, r == 0x26a1, r == 0x26d4, r == 0x2705,
		r == 0x270a, r == 0x270b, r == 0x2728, r == 0x274c, r == 0x274e, r >= 0x2753 && r <= 0x2755, r == 0x2757, r == 0x2b50, r == 0x2b55:
		return true
	case r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xa960 && r <= 0xa97f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe10 && r <= 0xfe19, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6:
		return true
	case r >= 0x16fe0 && r <= 0x1b2ff, r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f7e0 && r <= 0x1f7eb,
		r >= 0x1f900 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return true
	}
	return false
}

// cut returns text in at most limit columns; a cut one ends in an ellipsis. A limit under 1 is none.
func cut(text string, limit int) string {
	if limit < 1 || cells(text) <= limit {
		return text
	}
	n := 0
	for i, r := range text {
		if n+runeCells(r) > limit-1 {
			return text[:i] + "…"
		}
		n += runeCells(r)
	}
	return text
}

// number renders n with commas.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// tokens renders a number of tokens, with ~ if it is an estimate.
func tokens(n int, estimated bool) string {
	if estimated {
		return "~" + number(n)
	}
	return number(n)
}

// duration renders milliseconds.
func duration(ms int64) string {
	if ms <= 0 {
		return "0s"
	}
	return debug.Duration(time.Duration(ms) * time.Millisecond)
}

// stepOf renders a step and its limit; 0 = none.
func stepOf(n, total int) string {
	if total > 0 {
		return fmt.Sprintf("%d/%d", n, total)
	}
	return strconv.Itoa(n)
}

// modelName renders provider and model.
func modelName(provider, model string) string {
	if model == "" {
		return oneLine(provider)
	}
	return oneLine(provider + "/" + model)
}

// clock renders a time of today, or a date.
func clock(t, now time.Time) string {
	t = t.Local()
	if now.Local().YearDay() == t.YearDay() && now.Year() == t.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// size renders bytes.
func size(n int64) string {
	if n < 0 {
		return "-"
	}
	if n < 1024 {
		return strconv.FormatInt(n, 10)
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + "KMGTP"[unit:unit+1]
}

// exitText renders how a process ended: "exited(0): completed".
func exitText(e *types.ExitStatus) string {
	if e.Reason == "" {
		return fmt.Sprintf("exited(%d)", e.Code)
	}
	return fmt.Sprintf("exited(%d): %s", e.Code, oneLine(withoutSyscall(e.Reason, e.Err)))
}

// failedCalls is how many calls of a process failed.
func failedCalls(n int) string { return plural(n, "failed call", "failed calls") }

// plural renders a count and its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}
