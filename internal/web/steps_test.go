package web

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"rnix/internal/price"
	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// A process with a long past is no slower to look at than one with a short one, and all of it can be reached.
func TestStepsOfALongHistoryInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	steps := soak.Pick(t, "steps of the history", 5_000, 20_000)
	s := testenv.New(t)
	s.Stop()
	id := testenv.LongHistory(t, s.Data, steps).String()
	s.Start()
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	t.Log(d.scenario(chromium, "steps.mjs", nil, "RNIX_ID="+id, fmt.Sprint("RNIX_STEPS=", steps)))
}

// The page and the command line say the same of the same cost.
func TestCostHasTheSameWordsAsOnTheCommandLine(t *testing.T) {
	needsNode(t)
	var cases, want []string
	for _, usd := range []float64{0, 0.00001, 0.0042, 0.1234, 0.5, 1.25, 12.5, 1234.5} {
		for _, c := range [][2]int{{0, 0}, {100, 0}, {100, 40}, {100, 100}} {
			cases = append(cases, fmt.Sprintf("[%v,%d,%d]", usd, c[0], c[1]))
			want = append(want, price.Spent(usd, c[0], c[1]))
		}
	}
	script := "import('./app/src/lib/format.js').then(({ spent }) => { for (const c of [" + strings.Join(cases, ",") + "]) console.log(spent(...c)); })"
	out, err := exec.CommandContext(t.Context(), "node", "-e", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d answers to %d questions: %s", len(got), len(want), out)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s is %s on the page and %s on the command line", cases[i], got[i], want[i])
		}
	}
}
