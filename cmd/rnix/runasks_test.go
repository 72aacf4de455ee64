package main

import (
	"strings"
	"testing"
)

// What a run on a terminal asks is answered in place.
func TestAnAskIsAnsweredWhereTheRunIsShown(t *testing.T) {
	s := newScreen(t)
	talkAPI(t, s)
	s.open("100", "24", "rnix run --ask shell 'remove it'")
	s.sees("[ask] 1  PID 1", "shell rm -rf build", "y allow, n [WHY] deny")
	s.keys("what", "Enter") // is no answer
	s.until(func(text string) bool { return strings.Count(text, "y allow") == 2 }, "it is not asked again")
	s.keys("n not today", "Enter")
	s.sees("PID 1: refused: not today", "ended with 14")
	s.run("rnix run --ask shell 'remove it' & sleep 30; wait") // in the background nothing is read, and the run is not stopped
	s.sees("answer from another terminal with: rnix allow 2")
	if out := s.rnix("asks", "--all"); strings.Count(out, "not today") != 1 || strings.Count(out, "waits") != 1 {
		t.Errorf("the answer is not on record:\n%s", out)
	}
}
