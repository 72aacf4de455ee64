package lifecycle

import (
	"encoding/json"
	"strings"
	"testing"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// A family on disk, of which the record of one cannot be written, as on a full disk: the others are paused, and it is as it was, now and when the daemon
// starts again. With room it is paused, too.
func TestAPauseOfAFamilyOnDiskReachesAllButWhoCannotBeWritten(t *testing.T) {
	stop := step.Marker{Name: step.MarkerDaemonStop}
	broke := step.Marker{Name: step.MarkerSuspended, Text: "budget", Exit: new(types.ExitStatus), Detail: json.RawMessage(`{"kind":"budget"}`)}
	for name, c := range map[string]struct {
		who int // of the family
		end step.Marker
	}{"stopped with the daemon": {2, stop}, "suspended with an exit status": {2, broke}, "the head": {0, broke}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ends, family := []step.Marker{stop, stop, stop, broke, broke}, make([]types.UUID, 5)
			ends[c.who] = c.end
			for i, up := range []int{0, 0, 0, 2, 0} { // below whom
				family[i] = w.write(family[up], ends[i])
			}
			head, sick := family[0], family[c.who]
			was, _ := w.stored.Get(sick)
			pause := func() error {
				d := &signaller{Names: w.names, Access: &Access{Names: w.names, Kernel: w}, Stored: w.stored, Log: w.chain().Log, Kernel: w, Ground: w}
				_, err := d.send(t.Context(), nil, "SignalTree", ipc.SignalRequest{Target: head.String(), Signal: types.SIGPAUSE}, true)
				return err
			}
			shown := func(when string, all bool) {
				t.Helper()
				for n, id := range family {
					h, err := step.ReadHistory(t.Context(), w.stored.Cards.Journal, id)
					if err != nil {
						t.Fatalf("%s, number %d: %v", when, n, err)
					}
					i, _ := w.stored.Get(id)
					if want := all || id != sick; h.Life().Paused != want || (i.Why() == types.SuspendPaused) != want || len(h.Records) < 2 {
						t.Errorf("%s, number %d: paused %v, and shown as %q: %d records", when, n, h.Life().Paused, i.SuspendReason, len(h.Records))
					}
					if id == sick && !all && (i.Over() != was.Over() || i.SuspendReason != was.SuspendReason) {
						t.Errorf("%s it is shown as %s, %q; it was %s, %q", when, i.State, i.SuspendReason, was.State, was.SuspendReason)
					}
				}
			}
			w.disk.of = sick
			if err := pause(); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), sick.String()) || !strings.Contains(err.Error(), "no space") {
				t.Errorf("the error is %v", err)
			}
			shown("when it was refused", false)
			w.disk.of = types.UUID{}
			w.restart()
			shown("after a restart", false)
			if err := pause(); err != nil {
				t.Error(err)
			}
			shown("with room", true)
		})
	}
}
