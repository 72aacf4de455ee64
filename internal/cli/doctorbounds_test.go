package cli

import (
	"strings"
	"testing"

	"rnix/ipc"
	"rnix/types"
)

func TestDoctorSaysWhichLimitsAreEnforced(t *testing.T) {
	for name, c := range map[string]struct {
		by     ipc.Bounding
		set    types.Bounds
		status verdict
		want   string
	}{
		"both":            {ipc.Bounding{Memory: true, Processes: true}, types.Bounds{Memory: 4 << 30, Processes: -1}, fine, "cgroups limit what each process starts: processes, as configured without a limit; memory, as configured 4GiB"},
		"nothing, asked":  {ipc.Bounding{Why: "no cgroup"}, types.Bounds{Memory: 4 << 30}, warned, "no cgroup limits processes, as configured 2048; memory, as configured 4GiB: no cgroup"},
		"nothing, usual":  {ipc.Bounding{Why: "no cgroup"}, types.Bounds{}, absent, "no cgroup limits processes, as configured 2048; memory, as configured without a limit: no cgroup"},
		"one":             {ipc.Bounding{Processes: true, Why: "no memory"}, types.Bounds{}, absent, "cgroups limit processes, as configured 2048; no cgroup limits memory, as configured without a limit: no memory"},
		"an older daemon": {ipc.Bounding{}, types.Bounds{}, "", ""},
	} {
		f := newFake(t).serve()
		f.status = ipc.Status{PID: 1, Version: "dev", Bounds: c.by}
		f.provs = ipc.ProvidersResponse{Chosen: "p", Providers: []ipc.Provider{{Name: "p"}}}
		if got := enforced(c.by, c.set); c.want != "" && (got.Detail != c.want || got.Status != c.status || (got.Mend == "") != (c.status == fine)) {
			t.Errorf("%s: %+v", name, got)
		}
		if r := f.run("doctor", "--json"); strings.Contains(r.out, `"check":"limits"`) != (c.want != "") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
