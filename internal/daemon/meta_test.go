package daemon_test

import (
	"path/filepath"
	"slices"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// process-meta.json has every tool and action that the model was offered, in that order, whatever its rights; what is
// shown of a process that is only on disk is the same as of one that lives.
func TestMetaListsAllThatTheModelWasOffered(t *testing.T) {
	offered := make(chan []string, 1)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		select {
		case offered <- r.Tools:
		default:
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	shown := map[string][]string{}
	for name, allow := range map[string][]string{"all": nil, "files": {"/dev/fs"}, "none": {}} {
		p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake", Name: name, AllowedDevices: allow}})
		want := <-offered
		m, err := step.ReadMeta(durable.OS, filepath.Join(s.Data, "steps", p.UUID.String()))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tool := range m.Tools {
			if got = append(got, tool.Name); tool.Effect == "" || tool.Description == "" || len(tool.Schema) == 0 {
				t.Errorf("%s: %+v", name, tool)
			}
		}
		if m.UUID != p.UUID || !slices.Equal(got, want) || !slices.Contains(got, "complete") {
			t.Errorf("%s: %s has %q, the model was offered %q", name, m.UUID, got, want)
		}
		shown[name] = detail(t, s, name).Tools
		if slices.Sort(want); !slices.Equal(shown[name], want) {
			t.Errorf("%s: while it lives %q is shown of %q", name, shown[name], want)
		}
	}
	s.Stop()
	s.Start()
	s.Settle()
	for name, want := range shown {
		if got := detail(t, s, name).Tools; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("%s: on disk %q, alive %q", name, got, want)
		}
	}
}
