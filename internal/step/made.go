package step

import (
	"bytes"
	"time"
)

// Made says up to which record of a history something was made that is kept beside it. That file, and its place, can be believed if its
// sum is right; that the history still is the one that it was made of, this says.
type Made struct {
	Seq  uint64 // the last record that is in it
	Time time.Time
}

// By reports whether r is that record. Records that were lost, and others that took their numbers, are told apart by their times.
func (m Made) By(r *Record) bool { return r.Seq == m.Seq && r.Time.Equal(m.Time) }

// seal ends an object of JSON, with or without its newline, as a line of steps.jsonl ends: with the sum of all that stands before. The object
// must have a member. What it returns shares b's memory.
func seal(b []byte) []byte {
	b = bytes.TrimSuffix(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'}'})
	sum := checksum(b)
	return append(append(append(b, crcKey...), sum[:]...), "\"}\n"...)
}

// unseal returns the object that was sealed. It reports false if it is not as seal returns it. It changes b.
func unseal(b []byte) ([]byte, bool) {
	b, ended := bytes.CutSuffix(b, []byte{'\n'})
	n := len(b) - crcTail
	if !ended || n <= 0 || string(b[n:n+len(crcKey)]) != crcKey {
		return nil, false
	}
	if sum := checksum(b[:n]); string(b[n+len(crcKey):]) != string(sum[:])+`"}` {
		return nil, false
	}
	b[n] = '}'
	return b[:n+1], true
}
