package main

import "testing"

// What a run on a terminal asks is answered in place.
func TestAnAskIsAnsweredWhereTheRunIsShown(t *testing.T) {
	s := newScreen(t)
	talkAPI(t, s)
	s.open("100", "24", "rnix run --ask shell 'remove it'")
	s.sees("[ask] 1  PID 1", "shell rm -rf build", "y allow, n [WHY] deny")
	s.keys("what", "Enter") // is no answer
	s.until(func(text string) bool { return countOf(text, "y allow") == 2 }, "it is not asked again")
	s.keys("n not today", "Enter")
	s.sees("PID 1: refused: not today", "ended with 0")
	s.run("rnix run --ask shell 'remove it' & sleep 30; wait") // in the background nothing is read, and the run is not stopped
	s.sees("[ask] 2  PID 2", "answer from another terminal with: rnix allow 2")
	if out := s.rnix("asks", "--all"); countOf(out, "not today") != 1 || countOf(out, "waits") != 1 {
		t.Errorf("the answer is not on record:\n%s", out)
	}
}
