package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/drivers/fs"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/records"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// reader is a model that reads a file again and again, each time in another way.
type reader struct{ asked, steps int }

func (r *reader) Write(context.Context, []byte) error { r.asked++; return nil }
func (r *reader) Read(int) ([]byte, error) {
	if r.asked == r.steps {
		return []byte(`{"content":"done"}`), io.EOF
	}
	return fmt.Appendf(nil, `{"tool_calls":[{"id":"c","name":"read_file","input":{"path":"f","limit":%d}}],"usage":{"input_tokens":10}}`, r.asked), io.EOF
}
func (r *reader) Close() error                { return nil }
func (r *reader) Stat() (vfs.FileStat, error) { return vfs.FileStat{}, nil }

// What a step costs on disk does not depend on how many came before it: in the kernel's own records, in
// its events, and in the small files.
func TestAThousandStepsStayLinear(t *testing.T) {
	const steps = 1000
	data, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "f"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := store.Open(durable.OS, data, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	devices := vfs.NewDeviceRegistry()
	for _, err := range []error{
		devices.Register("/dev/llm", func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return &reader{steps: steps}, nil }),
		devices.RegisterTools(fs.Path, fs.New(fs.NewSeen(), nil).Open, fs.Tools()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	events := event.New(1 << 20)
	files := event.WriteFiles(events, durable.OS, func(id types.UUID) string { return filepath.Join(j.Dir(id), step.EventsFile) })
	kept := records.New(j, "test", config.Checkpoint{}, slog.New(slog.DiscardHandler))
	k := kernel.New(kernel.Config{Devices: devices, Contexts: rnixctx.NewManager(), Events: events, Store: kept}, nil)
	none := 0
	pid, err := k.Spawn("read on", &agent.Agent{}, kernel.SpawnOpts{ProcSpec: types.ProcSpec{Provider: "m", MaxSteps: &none}, WorkDir: work})
	if err != nil {
		t.Fatal(err)
	}
	i, err := k.WaitInfo(t.Context(), pid)
	if err != nil || i.Exit.Code != 0 || i.Step != steps {
		t.Fatalf("%+v %v", i, err)
	}
	err = k.Shutdown(t.Context())
	events.Close()
	for _, err := range []error{err, kept.Close(), files.Close(), j.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	dir := j.Dir(i.UUID)
	for _, name := range []string{step.StepsFile, step.EventsFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		var ends []int // where each step ends in the file
		at := 0
		for line := range strings.Lines(string(text)) {
			at += len(line)
			if strings.Contains(line, `"kind":"step"`) || strings.Contains(line, `"kind":"step_ended"`) {
				ends = append(ends, at)
			}
		}
		if len(ends) != steps {
			t.Fatalf("%s has %d steps", name, len(ends))
		}
		first, last := ends[steps/10]-ends[0], ends[steps-2]-ends[steps-2-steps/10] // the very last has no call
		if last > first+first/4 {
			t.Errorf("%s: the first hundred steps take %d bytes, the last %d", name, first, last)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if f, err := e.Info(); err != nil || f.Size() > steps*4<<10 {
			t.Errorf("%s has %d bytes after %d small steps, %v", e.Name(), f.Size(), steps, err)
		}
	}
}
