package cli

import (
	"strings"
	"testing"

	"rnix/ipc"
)

func TestDoctorSaysWhatAPauseUses(t *testing.T) {
	for freezer, want := range map[string]string{
		"cgroup2": `"check":"freezer","status":"ok"`,
		"born":    `start in a cgroup below /cg/rnix.7.A; a pause freezes it`,
		"cgroup1": `"check":"freezer","status":"ok"`,
		"signals": `"check":"freezer","status":"absent"`,
		"":        "", // a daemon that does not say
	} {
		f := newFake(t).serve()
		f.status = ipc.Status{PID: 1, Version: "dev", Freezer: freezer}
		if freezer == "born" {
			f.status.Freezer, f.status.Cgroup = "cgroup2", "/cg/rnix.7.A"
		}
		f.provs = ipc.ProvidersResponse{Chosen: "p", Providers: []ipc.Provider{{Name: "p"}}}
		r := f.run("doctor", "--json")
		if r.code != 0 || !strings.Contains(r.out, want) || strings.Contains(r.out, `"freezer"`) != (want != "") {
			t.Errorf("%q: %+v", freezer, r)
		}
	}
}
