package main

import "fmt"

// part is something that a killed process does. Its benchmark has all parts before it too.
type part struct{ does, bench string }

// killParts is the table of what a kill costs, part by part. The first is the baseline.
var killParts = []part{
	{"a goroutine that waits for its context, which ends with that of its parent: the tree of contexts", "contexts"},
	{"+ a context of its own, which the signal ends, for a cause", "signal"},
	{"+ a question under way, which has a context below that", "question"},
	{"+ a state and an exit status under a lock, and a channel that is closed for who waits", "exit"},
	{"+ five events: signal, zombie, end, reaped, dead", "events"},
	{"+ a purse in that of its parent", "purse"},
	{"+ numbers and links in the table, children handed on with an event for each, a tombstone", "table"},
	{"+ the question by a descriptor: an error with PID and path, an event with its text and the request's, the files closed", "files"},
	{"+ the kernel's own steps of a reap: conversation, groups, signals, threads, mailbox, goroutine", "reap"},
	{"an agent: + the loop, its record, what it waits for, word to the parent", "agents"},
}

// killedAtOnce is how many a tree of these benchmarks has.
const killedAtOnce = 1000

// partsRow is the benchmark that measures all parts.
var partsRow = row{measure: "kill of a tree, part by part", pkg: "./kernel", ours: "KillParts1000"}

// added is a part with its figures, for each process.
type added struct {
	part
	ours, more, ratio spread // more: than the part before
}

// judgeParts sets the parts beside the baseline and beside each other, round by round.
func judgeParts(s samples) (out []added, err error) {
	of := func(p part) []float64 { return s[sample{partsRow.pkg, partsRow.ours, p.bench + "-cpu-ns"}] }
	base := of(killParts[0])
	before := make([]float64, len(base))
	for _, p := range killParts {
		all := of(p)
		if len(all) == 0 || len(all) != len(base) {
			return nil, fmt.Errorf("%s: Benchmark%s gave %d figures for %s and %d for %s", partsRow.pkg, partsRow.ours, len(all), p.bench, len(base), killParts[0].bench)
		}
		var ours, more, ratio []float64
		for i, v := range all {
			ours, more, ratio = append(ours, v/killedAtOnce), append(more, (v-before[i])/base[i]), append(ratio, v/base[i])
		}
		out = append(out, added{p, spreadOf(ours), spreadOf(more), spreadOf(ratio)})
		before = all
	}
	return out, nil
}

// line is a row of the page's table.
func (a added) line() string {
	return fmt.Sprintf("| %s | %s | %s | %+.1fx |", a.does, amount(a.ours.mid, "ns"), times(a.ratio), a.more.mid)
}
