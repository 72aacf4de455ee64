package fsck

import (
	"encoding/json"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/types"
)

func TestADamagedInputIsNamed(t *testing.T) {
	w := &world{fs: faultfs.New("/data")}
	j := w.open(t)
	id := types.NewUUID()
	lease, err := j.Acquire(t.Context(), id, "test")
	must(t, err)
	dir := step.Dir("/data", id)
	refs, err := step.WriteInputs(w.fs, dir, []step.Input{{Name: "pipe", Text: "whole"}, {Name: "plan", Text: "whole too"}})
	must(t, err)
	detail, err := json.Marshal(step.Settled{Inputs: refs})
	must(t, err)
	wr := step.NewWriter(j, id, lease)
	must(t, wr.Marker(&step.Marker{Name: step.MarkerSpawn, PID: 3, Detail: detail}), wr.Close(t.Context()), j.Close())
	inputs := func() (out []Finding) {
		for _, f := range w.check(t, w.options()).Findings {
			if strings.HasPrefix(f.File, "inputs/") {
				out = append(out, f)
			}
		}
		return out
	}
	if got := inputs(); len(got) > 0 {
		t.Errorf("healthy: %+v", got)
	}
	w.write(t, dir+"/inputs/plan", "hole too")
	must(t, w.fs.Remove(dir+"/inputs/pipe"), durable.RemoveTemp(w.fs, dir))
	got := inputs()
	if len(got) != 2 || got[0].File != "inputs/pipe" || got[1].File != "inputs/plan" || got[1].Severity != Error || !strings.Contains(got[1].What, "damaged") {
		t.Errorf("%+v", got)
	}
}
