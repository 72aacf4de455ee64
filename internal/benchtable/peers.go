package main

import (
	"fmt"
	"slices"
	"strings"
)

// peersPkg is the module that measures others beside us. It is apart, so that the product does not depend on
// what it is compared with.
const peersPkg = "./bench/peers"

// contest is one thing that several can do, each in a benchmark named <bench>/<subject><variant>, in which
// "bare" is the least that any Go program would have to do.
type contest struct {
	measure  string
	bench    string
	variant  string   // such as /64B
	subjects []string // besides bare
	unit     string
	cpu      string // the unit of its processor time; empty = none
	alone    bool
}

var actors = []string{"rnix", "protoactor"}

// contests is the table of the section "Beside others, in the same run".
var contests = []contest{
	{measure: "message, one way", bench: "Send", subjects: actors},
	{measure: "message and answer", bench: "PingPong", subjects: actors},
	{measure: "message, 1,000 senders to one", bench: "FanIn", subjects: actors},
	{measure: "message to each of 1,000, for each", bench: "Broadcast", subjects: actors},
	{measure: "spawn, end, wait", bench: "Spawn", subjects: actors},
	{measure: "the same, 1,000 at once, for each", bench: "SpawnMany", subjects: actors},
	{measure: "kill of a tree of 1,000, for each", bench: "KillTree", subjects: actors},
	{measure: "pipe, 64 B", bench: "Pipe", variant: "/64B", subjects: []string{"rnix", "io.Pipe"}},
	{measure: "pipe, 4 KiB", bench: "Pipe", variant: "/4KiB", subjects: []string{"rnix", "io.Pipe"}},
	{measure: "pipe, 64 KiB", bench: "Pipe", variant: "/64KiB", subjects: []string{"rnix", "io.Pipe"}},
	{measure: "10,000 idle, resident memory of each", bench: "Idle", variant: "/10000", subjects: actors, unit: "RSS-B/each", alone: true},
	{measure: "10,000 idle, heap of each", bench: "Idle", variant: "/10000", subjects: actors, unit: "heap-B/each", alone: true},
	{measure: "10,000 idle, full garbage collection", bench: "Idle", variant: "/10000", subjects: actors, unit: "GC-ns", cpu: "GC-cpu-ns", alone: true},
	{measure: "100,000 idle, resident memory of each", bench: "Idle", variant: "/100000", subjects: actors, unit: "RSS-B/each", alone: true},
	{measure: "100,000 idle, heap of each", bench: "Idle", variant: "/100000", subjects: actors, unit: "heap-B/each", alone: true},
	{measure: "100,000 idle, full garbage collection", bench: "Idle", variant: "/100000", subjects: actors, unit: "GC-ns", cpu: "GC-cpu-ns", alone: true},
}

// rows are the comparisons of a contest, each with the bare subject as its baseline: for every subject its
// figure, and behind it its processor time if that is measured.
func (c contest) rows() (out []row) {
	units := []string{c.unit, c.cpu}
	if c.unit == "" {
		units = []string{"ns/each", "cpu-ns/each"}
	}
	for _, s := range c.subjects {
		for _, u := range units {
			if u != "" {
				out = append(out, row{measure: c.measure, pkg: peersPkg, ours: c.bench + "/" + s + c.variant, base: c.bench + "/bare" + c.variant, unit: u, alone: c.alone})
			}
		}
	}
	return out
}

// contested is a contest with its figures.
type contested struct {
	contest
	results []result // in order of contest.rows
}

// judge sets the figures of a contest beside each other.
func (c contest) judge(s samples) (contested, error) {
	out := contested{contest: c}
	for _, r := range c.rows() {
		res, err := r.judge(s)
		if err != nil {
			return out, err
		}
		out.results = append(out.results, res)
	}
	return out, nil
}

// line is a row of the page's table: the measure, the bare figure, ours, and the other's.
func (c contested) line() string {
	cells := []string{c.measure, amount(c.results[0].Base.mid, c.results[0].unit)}
	each := len(c.results) / len(c.subjects)
	for i, of := range slices.Collect(slices.Chunk(c.results, each)) {
		cell := fmt.Sprintf("%s, %sx", amount(of[0].Ours.mid, of[0].unit), number(of[0].Ratio.mid))
		if len(of) > 1 {
			cell += fmt.Sprintf(" (cpu %sx)", number(of[1].Ratio.mid))
		}
		if s := c.subjects[i]; s != "rnix" {
			cell = s + ": " + cell
		}
		cells = append(cells, cell)
	}
	return "| " + strings.Join(cells, " | ") + " |"
}
