// Command benchtable measures: it runs the benchmarks of the packages, sets each beside its baseline
// from the same rounds, and writes docs/benchmarks.md. What is measured, and against which target, is
// the one table in rows.go; the benchmarks themselves are in their packages. Run it in the directory
// of go.mod.
//
//	go run ./internal/benchtable          all rounds, and write the page
//	go run ./internal/benchtable -peers   the same, with others beside us: fetches their modules
//	go run ./internal/benchtable -short   run every benchmark once, to see that each row has its figures
//
// It judges no measurement: a target that is missed stands on the page and is no failure.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"time"
)

func main() {
	short := flag.Bool("short", false, "run each benchmark once and write nothing")
	rounds := flag.Int("rounds", 5, "how often each benchmark is run")
	each := flag.Duration("each", 300*time.Millisecond, "how long a benchmark runs in a round")
	others := flag.Bool("peers", false, "measure others too, from the module bench/peers")
	only := flag.String("only", "", "rows whose measure matches this regular expression; the page is printed, not written")
	out := flag.String("o", "docs/benchmarks.md", "the page to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *short, *others, *rounds, *each, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short, others bool, rounds int, each time.Duration, only, out string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds: %d is less than 1", rounds)
	}
	var chosen []row
	for _, r := range rows {
		if match.MatchString(r.measure) {
			chosen = append(chosen, r)
		}
	}
	var beside []contest
	all := chosen
	for _, c := range contests {
		if others && match.MatchString(c.measure) {
			beside = append(beside, c)
			all = append(all, c.rows()...)
		}
	}
	apart := match.MatchString(partsRow.measure)
	if apart {
		all = append(all, partsRow)
	}
	if len(all) == 0 {
		return fmt.Errorf("-only: no measure matches %q", only)
	}
	benchTime := each.String()
	if short {
		rounds, benchTime = 1, "1x"
	}
	machine := describe()
	started := time.Now()
	samples, err := measure(ctx, all, rounds, benchTime)
	if err != nil {
		return err
	}
	var results []result
	for _, r := range chosen {
		res, err := r.judge(samples)
		if err != nil {
			return err
		}
		results = append(results, res)
	}
	var peers []contested
	for _, c := range beside {
		res, err := c.judge(samples)
		if err != nil {
			return err
		}
		peers = append(peers, res)
	}
	var parts []added
	if apart {
		if parts, err = judgeParts(samples); err != nil {
			return err
		}
	}
	if short {
		_, err := fmt.Fprintf(os.Stdout, "%d rows measured once\n", len(results)+len(peers)+len(parts))
		return err
	}
	p := page{Machine: machine, Rounds: rounds, Each: each, Started: started, Took: time.Since(started), Load: load(), Results: results, Peers: peers, Parts: parts}
	if only != "" {
		return p.write(os.Stdout)
	}
	return p.save(out)
}
