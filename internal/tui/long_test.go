package tui

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

func longOf(t *testing.T, text string) *long {
	t.Helper()
	l := newLong(&Theme{})
	l.set(text)
	return l
}

func TestALongLineIsCutIntoRowsWhereItIsSeen(t *testing.T) {
	l := longOf(t, "one two three four five six seven")
	if got := l.view(10, 5); got != "one two\nthree four\nfive six\nseven\n" {
		t.Errorf("it shows %q", got)
	}
	l = longOf(t, strings.Repeat("世", 12))
	if got := l.view(7, 4); got != "世世世\n世世世\n世世世\n世世世" {
		t.Errorf("it shows %q", got)
	}
}

func TestAWindowGoesToBothEndsAndNoFurther(t *testing.T) {
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d %s\n", i, strings.Repeat("x", i))
	}
	l := longOf(t, b.String())
	l.view(20, 10)
	l.move(-5)
	if !strings.HasPrefix(l.view(20, 10), "line 0") {
		t.Error("it moved above the beginning")
	}
	l.move(100000)
	end := l.view(20, 10)
	l.end()
	if l.view(20, 10) != end || !l.atEnd() {
		t.Errorf("the end is %q, or %q", end, l.view(20, 10))
	}
	for range 1000 { // back row by row
		l.move(-1)
	}
	if !strings.HasPrefix(l.view(20, 10), "line 0") {
		t.Errorf("row by row it came to %q", l.view(20, 10))
	}
}

func TestTheEndStaysInSightWhileTextIsAdded(t *testing.T) {
	l := longOf(t, "")
	l.parts = nil
	l.tail = true
	l.view(20, 3)
	for i := range 10 {
		l.add(fmt.Sprintf("line %d", i))
	}
	if got := l.view(20, 3); got != "line 7\nline 8\nline 9" {
		t.Errorf("it shows %q", got)
	}
	l.move(-2)
	l.add("line 10")
	if got := l.view(20, 3); got != "line 5\nline 6\nline 7" {
		t.Errorf("who has scrolled back sees %q", got)
	}
	l.drop(3 * len("line 1"))
	if len(l.parts) > 4 {
		t.Errorf("%d lines are left", len(l.parts))
	}
}

func TestASearchFindsWhatIsThereInBothDirections(t *testing.T) {
	var b strings.Builder
	for i := range 300 {
		switch i % 100 {
		case 50:
			b.WriteString("here a Needle\n")
		default:
			b.WriteString("hay\n")
		}
	}
	l := longOf(t, b.String())
	l.view(30, 10)
	var at []int
	l.search("needle")
	at = append(at, l.at.part)
	for range 3 {
		l.next(1)
		at = append(at, l.at.part)
	}
	l.next(-1)
	at = append(at, l.at.part)
	if fmt.Sprint(at) != "[50 150 250 50 250]" {
		t.Errorf("it went to %v", at)
	}
	if l.search("NEEDLE") {
		t.Error("capital letters found small ones")
	}
	if l.next(1) || l.search("nothing of that") {
		t.Error("it found what is not there")
	}
}

func TestASearchFindsWhatLiesOverTheEdgeOfAPart(t *testing.T) {
	l := longOf(t, strings.Repeat("x", maxPart-3)+"needle"+strings.Repeat("y", 2*maxPart))
	l.view(80, 10)
	if !l.search("needle") || !strings.Contains(l.view(80, 10), "nee") {
		t.Errorf("it is at %v", l.at)
	}
}

// worked is how much time of the processor the tests have used: unlike the time of day, others that are busy do not change it.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Five megabytes are no reason to wait, in one line or in many, plain or not. The bounds are ten times what it takes.
func TestFiveMegabytesAreNoReasonToWait(t *testing.T) {
	for name, text := range map[string]string{
		"one line":        strings.Repeat("word ", 1<<20),
		"many lines":      strings.Repeat("a line of an answer\n", 5<<20/20),
		"wide characters": strings.Repeat("世界", 5<<20/6),
		"escapes":         strings.Repeat("\x1b[31mred\x1b[0m ", 5<<20/13),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLong(&Theme{})
			l.set(text)
			l.view(80, 24)
			begin := worked(t)
			for range 20 {
				l.page(1)
				l.view(80, 24)
			}
			l.end()
			l.view(80, 24)
			l.home()
			l.view(80, 24)
			if d := worked(t) - begin; d > 22*250*time.Millisecond {
				t.Errorf("22 screens took %s", d)
			}
		})
	}
}

func BenchmarkLongPage(b *testing.B) {
	l := newLong(&Theme{})
	l.set(strings.Repeat("世界 and words ", 5<<20/17))
	l.view(80, 24)
	for b.Loop() {
		l.page(1)
		l.view(80, 24)
	}
}

// atEnd reports whether the last row is to be seen.
func (l *long) atEnd() bool {
	e := l.last()
	return l.at.part > e.part || l.at.part == e.part && l.at.row >= e.row
}
