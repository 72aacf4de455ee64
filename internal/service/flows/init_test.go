package flows

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"rnix/internal/initfile"
)

const required = `supervisors:
  - {name: one, required: true, children: [{name: c, intent: x}]}
  - {name: two, children: [{name: c, intent: x}]}
`

// begin reads an init.yaml and makes of it what a start does. It returns what happened, in its order; waiting is noted with what is told while others
// wait for the start.
func begin(t *testing.T, w *world, file string) (steps []string, b *Boot) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, initfile.Name), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	note := func(s string) {
		if b.Starting() {
			s += ", others wait"
		}
		steps = append(steps, s)
	}
	b = NewBoot()
	b.Tell = func(string) { note("why is noted") }
	in := &Init{Flows: w.service(), Boot: b, Dir: dir, Home: dir, Profile: func() (Profile, error) { return client{w: w}, nil },
		Note: func(string, ...any) {}, Misread: func(string) { note("misread") }, Log: slog.New(slog.DiscardHandler)}
	in.Read()
	looked := make(chan struct{})
	in.Run(t.Context(), func() { note("the old ones") }, looked, func(ok bool) {
		<-looked
		note(map[bool]string{true: "started", false: "stopped"}[ok])
	})
	if b.Starting() {
		t.Error("others wait for good")
	}
	return steps, b
}

// Who waits for what is required goes on when the daemon has noted that it has started, or is being stopped: not before.
func TestNobodyGoesOnBeforeItIsNotedWhetherTheDaemonStarts(t *testing.T) {
	w := &world{broken: map[string]error{}}
	steps, b := begin(t, w, required)
	if !slices.Equal(steps, []string{"the old ones, others wait", "started, others wait"}) || !slices.Equal(w.started, []string{"one", "two"}) || b.Wait(t.Context()) != nil {
		t.Errorf("%q, %v", steps, w.started)
	}
	w = &world{broken: map[string]error{"one": errors.New("too many")}}
	steps, b = begin(t, w, required)
	if !slices.Equal(steps, []string{"the old ones, others wait", "why is noted, others wait", "stopped, others wait"}) || w.started != nil || b.Wait(t.Context()) == nil {
		t.Errorf("%q, %v", steps, w.started)
	}
	w = &world{broken: map[string]error{"two": errors.New("too many")}} // it is not required
	if steps, b = begin(t, w, required); !slices.Equal(steps, []string{"the old ones, others wait", "started, others wait"}) || b.Wait(t.Context()) != nil || b.All()[1].How != "failed" {
		t.Errorf("%q, %+v", steps, b.All())
	}
	if steps, _ = begin(t, &world{}, "supervisors: [{name: one, required: true, strategy: odd}]"); !slices.Equal(steps, []string{"why is noted, others wait", "stopped, others wait"}) {
		t.Errorf("%q", steps)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if NewBoot().Wait(ended) == nil {
		t.Error("it was not waited for")
	}
}
