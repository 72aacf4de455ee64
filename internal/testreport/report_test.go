package main

import (
	"strings"
	"testing"
)

const passing = `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Elapsed":1.25}
`

func TestTheReportSaysWhatHappened(t *testing.T) {
	cases := []struct {
		name, in   string
		want, not  []string
		last       string
		exitStatus int
	}{
		{"all passed", passing + "exit status 0\n",
			[]string{"ok    m/a  1.2s"}, []string{"chatter"}, "1 passed, 0 failed, 0 skipped", 0},
		{"failure is shown", strings.ReplaceAll(passing, `"pass"`, `"fail"`) + "exit status 1\n",
			[]string{"chatter", "FAIL  m/a"}, nil, "0 passed, 1 failed, 0 skipped", 1},
		{"a race in the output of a test that passes is shown", strings.Replace(passing, `"Output":"chatter\n"}`, `"Output":"==================\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"Write at 0x1 by goroutine 7\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"==================\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"chatter\n"}`, 1) + "exit status 0\n",
			[]string{"data race in m/a:\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 7\n"}, []string{"chatter"}, "1 passed, 0 failed, 0 skipped", 0},
		{"skip of a script is named", `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestScripts/held"}
{"Action":"output","Package":"m/a","Test":"TestScripts/held","Output":"    testscript.go:584: WORK=$WORK\n"}
{"Action":"output","Package":"m/a","Test":"TestScripts/held","Output":"        HOME=$WORK/home\n"}
{"Action":"output","Package":"m/a","Test":"TestScripts/held","Output":"        > [!cgroup] skip 'needs a cgroup'\n"}
{"Action":"output","Package":"m/a","Test":"TestScripts/held","Output":"        \n"}
{"Action":"output","Package":"m/a","Test":"TestScripts/held","Output":"--- SKIP: TestScripts/held (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestScripts/held"}
{"Action":"skip","Package":"m/a"}
exit status 0
`, []string{"skipped: m/a TestScripts/held: needs a cgroup\n"}, nil, "0 passed, 0 failed, 1 skipped", 0},
		{"skip is named", `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestX/sub"}
{"Action":"output","Package":"m/a","Test":"TestX/sub","Output":"    a_test.go:7: needs claude: not in PATH\n"}
{"Action":"output","Package":"m/a","Test":"TestX/sub","Output":"--- SKIP: TestX/sub (0.00s)\n"}
{"Action":"skip","Package":"m/a","Test":"TestX/sub"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a"}
exit status 0
`, []string{"skipped: m/a TestX/sub: needs claude: not in PATH"}, nil, "0 passed, 0 failed, 1 skipped", 0},
		{"tests that wait for their turn are counted apart, and named in one line", `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestY"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"    a_test.go:7: needs its turn, which is in another gate: ./test --all runs it\n"}
{"Action":"skip","Package":"m/a","Test":"TestY"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:7: needs its turn, which is in another gate: ./test --all runs it\n"}
{"Action":"skip","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a"}
exit status 0
`, []string{"later: m/a: 2 tests that run in other gates (all run with ./test --all): TestX, TestY\n"}, []string{"skipped:"}, "0 passed, 0 failed, 0 skipped, 2 later", 0},
		{"a subtest's failure is counted once", `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestX/a"}
{"Action":"run","Package":"m/a","Test":"TestX/a/b"}
{"Action":"fail","Package":"m/a","Test":"TestX/a/b"}
{"Action":"fail","Package":"m/a","Test":"TestX/a"}
{"Action":"run","Package":"m/a","Test":"TestX/c"}
{"Action":"pass","Package":"m/a","Test":"TestX/c"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"fail","Package":"m/a"}
exit status 1
`, nil, nil, "1 passed, 1 failed, 0 skipped", 1},
		{"the slowest are named, and what statistical tests have tried", strings.NewReplacer(
			`chatter\n`, `    a_test.go:7: soak: kills: 100 (in the gate 5)\n`, `"pass","Package":"m/a","Test"`, `"pass","Elapsed":12.34,"Package":"m/a","Test"`).Replace(passing) + "exit status 0\n",
			[]string{"slow:   12.3s m/a TestX\n", "\nsoak: kills: 100 (in the gate 5) (m/a TestX)\n"}, nil, "1 passed, 0 failed, 0 skipped", 0},
		{"short forms are counted", strings.Replace(passing, `chatter\n`, `    a_test.go:7: short: kills: 5 (in a soak 100)\n`, 1) + "exit status 0\n",
			[]string{"short: 1 amounts"}, []string{"kills", "slow"}, "1 passed, 0 failed, 0 skipped", 0},
		{"a package that does not build", `{"ImportPath":"m/a","Action":"build-output","Output":"a.go:1: broken\n"}
{"ImportPath":"m/a","Action":"build-fail"}
{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}
{"Action":"fail","Package":"m/a","FailedBuild":"m/a"}
exit status 1
`, []string{"a.go:1: broken"}, nil, "0 passed, 1 failed, 0 skipped", 1},
		{"a panic names what was running", `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"panic: boom\n"}
{"Action":"fail","Package":"m/a"}
exit status 1
`, []string{"panic: boom", "did not end: m/a TestX"}, nil, "0 passed, 1 failed, 0 skipped", 1},
		{"a leak found after the tests", strings.Replace(passing, `"pass","Package":"m/a","E`, `"fail","Package":"m/a","E`, 1) + "exit status 1\n",
			[]string{"FAIL  m/a"}, nil, "1 passed, 1 failed, 0 skipped", 1},
		{"other checks", "x.go:1: vet says\nfailed: go vet\n" + passing + "exit status 0\n",
			[]string{"x.go:1: vet says", "FAIL  go vet"}, nil, "1 passed, 1 failed, 0 skipped", 1},
		{"an exit status that nothing explains", passing + "exit status 2\n",
			[]string{"FAIL  go test: exit status 2"}, nil, "1 passed, 1 failed, 0 skipped", 1},
		{"a run that was cut", strings.Join(strings.SplitAfter(passing, "\n")[:3], "") + "exit status 124\n",
			[]string{"m/a: the run ended before it did"}, nil, "0 passed, 1 failed, 0 skipped", 1},
		{"nothing at all", "", []string{"no package was tested"}, nil, "0 passed, 1 failed, 0 skipped", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			if status := r.finish(); status != c.exitStatus {
				t.Errorf("exit status %d, want %d", status, c.exitStatus)
			}
			for _, w := range c.want {
				if !strings.Contains(out.String(), w) {
					t.Errorf("lacks %q", w)
				}
			}
			for _, w := range c.not {
				if strings.Contains(out.String(), w) {
					t.Errorf("has %q", w)
				}
			}
			if !strings.HasSuffix(out.String(), "\n"+c.last+"\n") {
				t.Errorf("the last line is not %q", c.last)
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}
