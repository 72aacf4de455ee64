package tui

import (
	"context"
	"io"
	"os"
)

// What the other faces that draw on a terminal use of this one, so that all of them look and clean alike.

// Style is how a piece of text stands out.
type Style = style

// The styles. What matters is never said by colour alone.
const (
	Plain   = plain
	Bold    = bold
	Dim     = dim
	Reverse = reverse
	Red     = red
	Green   = green
	Yellow  = yellow
	Cyan    = cyan
)

// Paint returns clean text in a style.
func Paint(t *Theme, st Style, text string) string { return t.paint(st, text) }

// Clean returns text of many lines as it may be shown: nothing in it is obeyed by a terminal, and tabs are blanks.
func Clean(t *Theme, text string) string { return t.clean(text) }

// Line returns the beginning of a text, at most 4 KiB, clean and on one line.
func Line(t *Theme, text string) string { return t.line(text) }

// Cells returns how many columns clean text takes, styles not counted.
func Cells(t *Theme, text string) int { return t.cells(text) }

// Pad fills a line up to n cells.
func Pad(t *Theme, line string, n int) string { return t.pad(line, n) }

// Cut returns one clean line in at most n cells; a cut one ends in an ellipsis. Styles in it are kept.
func Cut(t *Theme, line string, n int) string { return t.cut(line, n) }

// Pick returns the first of two forms, or the second where only ASCII is drawn.
func Pick(t *Theme, uni, ascii string) string { return t.pick(uni, ascii) }

// ErrorText is an error as it is shown beside the process that it is about.
func ErrorText(err error) string { return errorText(err) }

// Number writes a number with a comma before each three digits.
func Number(n int) string { return number(n) }

// Hangup returns the terminal f; when it has gone away, gone is called.
func Hangup(f *os.File, gone context.CancelFunc) io.Reader { return hangup{f, gone} }
