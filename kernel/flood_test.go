package kernel

import (
	"context"
	"strings"
	"testing"

	"rnix/internal/event"
	"rnix/types"
	"rnix/vfs"
)

// fountain is a device that says a text again and again while it works.
type fountain struct {
	device
	notify func(vfs.StreamPart)
}

func (f *fountain) NotifyStream(h func(vfs.StreamPart)) { f.notify = h }

func TestProgramThatPrintsWithoutEndDoesNotFillTheLog(t *testing.T) {
	for name, text := range map[string]string{"lines": "y\n", "one line": strings.Repeat("y", 1<<20) + "\n", "no line end": "yyyyyyyy"} {
		t.Run(name, func(t *testing.T) {
			s := newSys(t, func(c *Config) {
				err := c.Devices.RegisterTools("/dev/fountain", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
					f := &fountain{}
					f.do = func(context.Context, vfs.Caller, []byte) (string, error) {
						for said := 0; said < 4*listenMax; said += len(text) {
							f.notify(vfs.StreamPart{Kind: "output", Text: text})
						}
						return "the end", nil
					}
					return f, nil
				}, []vfs.Tool{{Name: "fountain", Path: "/dev/fountain", Schema: []byte(`{"type":"object"}`), Effect: vfs.EffectNone}})
				if err != nil {
					t.Fatal(err)
				}
			})
			s.model = func(_ context.Context, _ vfs.Caller, turn int) (reply, error) {
				if turn == 1 {
					return reply{Calls: []string{"fountain {}"}}, nil
				}
				return reply{Content: "done"}, nil
			}
			if e, err := s.Wait(s.spawn()); err != nil || e.Code != types.ExitOK {
				t.Fatalf("%v %v", e, err)
			}
			size, last := 0, ""
			for cur := s.events.Cursor(s.events.Oldest()); ; {
				e, ok, err := cur.TryNext()
				if err != nil {
					t.Fatalf("the log is washed away: %v", err)
				}
				if !ok {
					break
				}
				if e.Kind == event.LogLine {
					size, last = size+len(event.AppendJSON(nil, &e)), e.Text
				}
			}
			if size == 0 || size > 2*listenMax || !strings.Contains(last, "too much") && !strings.Contains(last, "left out") {
				t.Errorf("%d bytes, the last line is %.200q", size, last)
			}
		})
	}
}
