package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// samples are the figures of each benchmark, one for each round.
type samples map[sample][]float64

type sample struct{ pkg, bench, unit string }

// measure runs the benchmarks of the rows. Each round runs all of them, so that a busy minute of the
// machine touches a benchmark and its baseline alike.
func measure(ctx context.Context, rows []row, rounds int, benchTime string) (samples, error) {
	dir, err := os.MkdirTemp("", "benchtable")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binaries := map[string]string{}
	for _, r := range rows {
		if binaries[r.pkg] != "" {
			continue
		}
		bin := filepath.Join(dir, strings.NewReplacer(".", "", "/", "_").Replace(r.pkg))
		args := []string{"test", "-c", "-o", bin, "."}
		if r.pkg == peersPkg { // what it requires indirectly follows what we require
			args = slices.Insert(args, 1, "-mod=mod")
		}
		if _, err := command(ctx, r.pkg, "go", args...); err != nil {
			return nil, err
		}
		binaries[r.pkg] = bin
	}
	out := samples{}
	for n := range rounds {
		for _, g := range plan(rows) {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s %s\n", n+1, rounds, g.pkg, strings.Join(g.names, " "))
			each := benchTime
			if g.alone {
				each = "1x"
			}
			text, err := command(ctx, g.pkg, binaries[g.pkg], "-test.run=^$", "-test.benchmem", "-test.timeout=20m",
				"-test.benchtime="+each, "-test.bench="+pattern(g.names))
			if err != nil {
				return nil, err
			}
			out.read(g.pkg, text)
		}
	}
	return out, nil
}

// group is what one program run measures.
type group struct {
	pkg   string
	names []string
	alone bool
}

// plan puts the benchmarks into as few runs as possible: one for the top level name of each package's
// benchmarks, and one for each that is to be alone.
func plan(rows []row) (out []group) {
	for _, r := range rows {
		for _, name := range []string{r.ours, r.base} {
			if name == "" {
				continue
			}
			i := slices.IndexFunc(out, func(g group) bool {
				return g.pkg == r.pkg && (slices.Contains(g.names, name) || !r.alone && !g.alone && top(g.names[0]) == top(name))
			})
			if i < 0 {
				out = append(out, group{pkg: r.pkg, names: []string{name}, alone: r.alone})
			} else if !slices.Contains(out[i].names, name) {
				out[i].names = append(out[i].names, name)
			}
		}
	}
	return out
}

func top(name string) string { t, _, _ := strings.Cut(name, "/"); return t }

// pattern is the regular expression for benchmarks with one top level name. Go matches each level of a
// name by itself, so it may match a few more.
func pattern(names []string) string {
	var levels [][]string
	for _, name := range names {
		for i, part := range strings.Split(name, "/") {
			if i == 0 {
				part = "Benchmark" + part
			}
			if part = "^" + regexp.QuoteMeta(part) + "$"; i == len(levels) {
				levels = append(levels, []string{part})
			} else if !slices.Contains(levels[i], part) {
				levels[i] = append(levels[i], part)
			}
		}
	}
	var out []string
	for _, l := range levels {
		out = append(out, "("+strings.Join(l, "|")+")")
	}
	return strings.Join(out, "/")
}

// command runs a program in a directory and returns what it printed.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(name), strings.Join(args, " "), err, out.Bytes(), said.Bytes())
	}
	return out.Bytes(), nil
}

// commit names the commit that is checked out, and says so if files differ from it.
func commit() string {
	ctx := context.Background()
	head, err := command(ctx, ".", "git", "rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	changed, err := command(ctx, ".", "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil || len(bytes.TrimSpace(changed)) > 0 {
		return string(bytes.TrimSpace(head)) + ", with changes"
	}
	return string(bytes.TrimSpace(head))
}
