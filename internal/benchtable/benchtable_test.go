package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const printed = `goos: linux
pkg: rnix/x
BenchmarkA/ours-2         	     100	      3000 ns/op	     128 B/op	       2 allocs/op
BenchmarkA/bare-16        	     100	      1000 ns/op	      0 B/op
--- BENCH: BenchmarkA
BenchmarkTorn-2
PASS
`

func TestFiguresOfABenchmarkAreFoundByNameAndUnit(t *testing.T) {
	s := samples{}
	s.read("./x", []byte(printed))
	s.read("./x", []byte(strings.ReplaceAll(printed, "3000", "5000")))
	got, err := row{pkg: "./x", ours: "A/ours", base: "A/bare", target: 3.5, gate: 4}.judge(s)
	if err != nil {
		t.Fatal(err)
	}
	if got.Ours != (spread{4000, 3000, 5000}) || got.Ratio != (spread{4, 3, 5}) || got.Verdict != "within the gate" {
		t.Fatalf("%+v", got)
	}
	if _, err := (row{pkg: "./x", ours: "A/ours", base: "A/other"}).judge(s); err == nil || !strings.Contains(err.Error(), "A/other") {
		t.Errorf("a baseline that was not measured: %v", err)
	}
	if _, err := (row{pkg: "./x", ours: "A/ours", unit: "nothing/op"}).judge(s); err == nil {
		t.Error("a unit that was not measured is no error")
	}
}

func TestAbsoluteTargetsAreForOursAndNotForTheRatio(t *testing.T) {
	s := samples{}
	s.read("./x", []byte(printed))
	for _, c := range []struct {
		target float64
		want   string
	}{{3000, "meets"}, {2999, "**misses**"}} {
		got, err := row{pkg: "./x", ours: "A/ours", base: "A/bare", absolute: true, target: c.target}.judge(s)
		if err != nil || got.Verdict != c.want {
			t.Errorf("target %v: %q, %v", c.target, got.Verdict, err)
		}
	}
}

func TestEveryBenchmarkOfTheTableIsRunOnceInARound(t *testing.T) {
	all := slices.Clone(rows)
	for _, c := range contests {
		all = append(all, c.rows()...)
	}
	all = append(all, partsRow)
	for _, r := range all {
		for _, name := range []string{r.ours, r.base} {
			if name == "" {
				continue
			}
			n := 0
			for _, g := range plan(all) {
				if g.pkg != r.pkg || g.alone != r.alone {
					continue
				}
				levels := strings.Split(pattern(g.names), "/")
				parts := strings.Split("Benchmark"+name, "/")
				matches := len(levels) >= len(parts)
				for i := range parts {
					matches = matches && regexp.MustCompile(levels[i]).MatchString(parts[i])
				}
				if matches {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s %s is matched by %d runs", r.pkg, name, n)
			}
		}
	}
}

func TestARowReadsAsPeopleWriteIt(t *testing.T) {
	r := result{row: row{no: "1", measure: "m", base: "b", what: "bare", unit: "ns/op", target: 2.5, gate: 4},
		Ours: spread{mid: 12345}, Base: spread{mid: 456.7}, Ratio: spread{27.03, 20, 1234}, Verdict: "**misses**"}
	if got, want := r.line(), "| 1 | m | 12.3 us | bare: 457 ns | 27x (20 to 1234) | ≤ 2.5x (4x) | **misses** |"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for v, want := range map[float64]string{12: "12 B", 13235: "12.9 KiB"} {
		if got := amount(v, "RSS-B/proc"); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestAContestShowsEachSubjectBesideBareGo(t *testing.T) {
	c := contest{measure: "m", bench: "Send", subjects: actors}
	s := samples{}
	for i, name := range []string{"bare", "rnix", "protoactor"} {
		v := float64(i + 1)
		s[sample{peersPkg, "Send/" + name, "ns/each"}] = []float64{100 * v, 100 * v}
		s[sample{peersPkg, "Send/" + name, "cpu-ns/each"}] = []float64{10 * v * v, 10 * v * v}
	}
	got, err := c.judge(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| m | 100 ns | 200 ns, 2x (cpu 4x) | protoactor: 300 ns, 3x (cpu 9x) |"; got.line() != want {
		t.Errorf("got  %s\nwant %s", got.line(), want)
	}
	delete(s, sample{peersPkg, "Send/protoactor", "ns/each"})
	if _, err := c.judge(s); err == nil || !strings.Contains(err.Error(), "Send/protoactor") {
		t.Errorf("a subject that was not measured: %v", err)
	}
}

func TestAPartShowsWhatItAddsToThoseBeforeIt(t *testing.T) {
	s := samples{}
	for i, p := range killParts {
		v := float64(i+1) * 1_000_000
		s[sample{partsRow.pkg, partsRow.ours, p.bench + "-cpu-ns"}] = []float64{v, v * 1.2}
	}
	got, err := judgeParts(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := "| " + killParts[2].does + " | 3.3 us | 3x (3 to 3) | +1.0x |"; got[2].line() != want {
		t.Errorf("got  %s\nwant %s", got[2].line(), want)
	}
	delete(s, sample{partsRow.pkg, partsRow.ours, "table-cpu-ns"})
	if _, err := judgeParts(s); err == nil || !strings.Contains(err.Error(), "table") {
		t.Errorf("a part that was not measured: %v", err)
	}
}

// A benchmark that moves to another package is missed at the end of the rounds only, minutes later.
func TestEachRowNamesABenchmarkOfItsPackage(t *testing.T) {
	have := map[string]string{} // the tests of a package
	for _, r := range rows {
		if _, read := have[r.pkg]; !read {
			files, err := filepath.Glob(filepath.Join("..", "..", r.pkg, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				have[r.pkg] += string(b)
			}
		}
		for _, name := range []string{r.ours, r.base} {
			if name, _, _ = strings.Cut(name, "/"); name != "" && !strings.Contains(have[r.pkg], "func Benchmark"+name+"(") {
				t.Errorf("row %s, %s: there is no Benchmark%s in %s", r.no, r.measure, name, r.pkg)
			}
		}
	}
}
