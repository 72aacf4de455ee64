package main

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// The tests m/a TestX and m/a TestY/sub, of which those fail that are told.
func ran(failing ...string) string {
	var b strings.Builder
	b.WriteString(`{"Action":"start","Package":"m/a"}` + "\n")
	line := func(action, test, rest string) {
		b.WriteString(`{"Action":"` + action + `","Package":"m/a","Test":"` + test + `"` + rest + "}\n")
	}
	end := func(test string) {
		if slices.ContainsFunc(failing, func(f string) bool { return f == test || strings.HasPrefix(f, test+"/") }) {
			line("fail", test, "")
		} else {
			line("pass", test, "")
		}
	}
	for _, test := range []string{"TestX", "TestY", "TestY/sub"} {
		line("run", test, "")
	}
	for _, test := range []string{"TestX", "TestY/sub", "TestY"} {
		end(test)
	}
	if len(failing) > 0 {
		return b.String() + `{"Action":"fail","Package":"m/a"}` + "\nexit status 1\n"
	}
	return b.String() + `{"Action":"pass","Package":"m/a"}` + "\nexit status 0\n"
}

func TestAFailedTestIsForgivenOnlyIfItPassesAlone(t *testing.T) {
	race := strings.Replace(ran("TestX"), `"Action":"fail","Package":"m/a","Test":"TestX"`,
		`"Action":"output","Package":"m/a","Test":"TestX","Output":"WARNING: DATA RACE\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"`, 1)
	onlyX := `{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a"}
exit status 0
`
	cases := []struct {
		name, in, second string
		most             int
		runs             []string
		last             string
		exitStatus       int
	}{
		{"nothing fails", ran(), "", 2, nil, "2 passed, 0 failed, 0 skipped", 0},
		{"it passes alone", ran("TestX"), onlyX, 2, []string{"^TestX$"}, "2 passed, 0 failed, 0 skipped, 1 flaky", 0},
		{"a subtest is run without its neighbours", ran("TestY/sub"), onlyX, 2, []string{"^TestY$/^sub$"}, "2 passed, 0 failed, 0 skipped, 1 flaky", 0},
		{"it fails again", ran("TestX"), ran("TestX"), 2, []string{"^TestX$"}, "1 passed, 1 failed, 0 skipped", 1},
		{"it leaks when it passes", ran("TestX"), strings.NewReplacer(`"pass","Package":"m/a"}`+"\n"+`exit status 0`, `"fail","Package":"m/a"}`+"\n"+`exit status 1`).Replace(onlyX), 2,
			[]string{"^TestX$"}, "1 passed, 1 failed, 0 skipped", 1},
		{"a second run that runs nothing", ran("TestX"), `{"Action":"start","Package":"m/a"}` + "\n" + `{"Action":"pass","Package":"m/a"}` + "\nexit status 0\n", 2,
			[]string{"^TestX$"}, "1 passed, 1 failed, 0 skipped", 1},
		{"two of two", ran("TestX", "TestY/sub"), onlyX, 2, []string{"^TestX$", "^TestY$/^sub$"}, "2 passed, 0 failed, 0 skipped, 2 flaky", 0},
		{"more than may", ran("TestX", "TestY/sub"), onlyX, 1, nil, "0 passed, 2 failed, 0 skipped", 1},
		{"a data race", race, onlyX, 2, nil, "1 passed, 1 failed, 0 skipped", 1},
		{"another check fails too", "failed: go vet\n" + ran("TestX"), onlyX, 2, nil, "1 passed, 2 failed, 0 skipped", 1},
		{"none may", ran("TestX"), onlyX, 0, nil, "1 passed, 1 failed, 0 skipped", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.in)); err != nil {
				t.Fatal(err)
			}
			var runs []string
			r.retry(again{command: []string{"go", "test"}, most: c.most}, func(command []string, out io.Writer) *report {
				if len(command) != 6 || command[2] != "-count=1" || command[3] != "-run" || command[5] != "m/a" {
					t.Errorf("runs %q", command)
				}
				runs = append(runs, command[4])
				second := newReport(out)
				if err := second.read(strings.NewReader(c.second)); err != nil {
					t.Fatal(err)
				}
				return second
			})
			if !slices.Equal(runs, c.runs) {
				t.Errorf("runs %q again, want %q", runs, c.runs)
			}
			if status := r.finish(); status != c.exitStatus {
				t.Errorf("exit status %d, want %d", status, c.exitStatus)
			}
			if !strings.HasSuffix(out.String(), "\n"+c.last+"\n") {
				t.Errorf("the last line is not %q:\n%s", c.last, &out)
			}
			for _, run := range c.runs {
				if said := strings.Contains(out.String(), "flaky: m/a "+strings.NewReplacer("^", "", "$", "").Replace(run)+":"); said != (c.exitStatus == 0) {
					t.Errorf("%s is named as flaky: %v:\n%s", run, said, &out)
				}
			}
		})
	}
}

func TestArgumentsSayWhatIsRunAgain(t *testing.T) {
	if a, err := againFrom([]string{"-again", "2", "go", "test", "-json"}); err != nil || a.most != 2 || !slices.Equal(a.command, []string{"go", "test", "-json"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for _, args := range [][]string{{"-again"}, {"-again", "2"}, {"-again", "x", "go"}, {"-again", "-1", "go"}, {"go", "test", "x"}} {
		if _, err := againFrom(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}
