package proc

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/runtime/env"
	"rnix/types"
)

// ends counts the channels that were opened and that have ended.
type ends struct{ opened, ended atomic.Int64 }

// open gives a child the reading end of a pipe in which the number of its process is.
func (e *ends) open(owner types.PID) (*os.File, func(), error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	_, err = w.WriteString("process " + owner.String())
	e.opened.Add(1)
	return r, func() { e.ended.Add(1) }, errOr(err, w.Close())
}

func errOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func TestChildrenThatWorkForAProcessHaveAChannel(t *testing.T) {
	m := newManager(t)
	var e ends
	m.Channels = Channels{DataDir: "/of a daemon", Open: e.open}
	for _, c := range []struct {
		kind  Kind
		owner types.PID
		has   bool
	}{
		{KindShell, 7, true}, {KindLLM, 8, false}, {KindHarness, 9, true}, {KindShell, 0, false}, {KindMCP, 7, true}, {KindGit, 7, false},
	} {
		var out bytes.Buffer
		spec := sh(`echo "$`+env.ChannelVar+`"; test -e /proc/self/fd/200 && cat /proc/self/fd/200; for f in /proc/self/fd/*; do test -e $f && printf " ${f##*/}"; done`, &out)
		spec.Kind, spec.Owner = c.kind, c.owner
		spec.Env = append(spec.Env, env.ChannelVar+"=9:/of/somebody")
		start(t, m, spec).Wait()
		want := "\n 0 1 2"
		if c.has {
			want = "200:/of a daemon\nprocess " + c.owner.String() + " 0 1 2 200"
		}
		if out.String() != want {
			t.Errorf("%s of %d: %q, want %q", c.kind, c.owner, out.String(), want)
		}
	}
	if o, n := e.opened.Load(), e.ended.Load(); o != 3 || n != 3 {
		t.Errorf("%d channels were opened, and %d have ended", o, n)
	}
}

func TestAChildWithAChannelAdoptsItsOrphansAndHasItsFiles(t *testing.T) {
	m := newManager(t)
	var e ends
	m.Channels = Channels{DataDir: "/data", Open: e.open}
	c := start(t, m, sh("true", io.Discard))
	if c.Wait(); c.adopts != adopts() {
		t.Error("it is no subreaper")
	}
	var out bytes.Buffer
	start(t, m, sh(`for f in /proc/self/fd/*; do test -e $f && printf " ${f##*/}"; done`, &out)).Wait()
	if out.String() != " 0 1 2 200" {
		t.Error(out.String())
	}
}

func TestAChannelEndsWhenItsChildAndWhatThatHasLeftAreGone(t *testing.T) {
	m := newManager(t)
	var e ends
	var left int
	m.Channels = Channels{DataDir: "/data", Open: func(owner types.PID) (*os.File, func(), error) {
		f, end, err := e.open(owner)
		return f, func() { left = len(infos(m.of(owner))); end() }, err
	}}
	out := newLines(t)
	c := start(t, m, sh(`setsid sleep 1000 & echo $!; exit`, out))
	id := out.pid(t)
	c.Wait()
	if n := e.ended.Load(); n != 1 || left != 1 {
		t.Errorf("it was called %d times, while %d children were known", n, left)
	}
	if alive(id) {
		t.Error("what it had left lives")
	}
	// One that cannot be started, and one that has none.
	spec := sh("true", io.Discard)
	spec.Dir = "/"
	spec.Args = append(spec.Args, strings.Repeat("x", 4<<20))
	if _, err := m.Start(t.Context(), spec); err == nil || e.ended.Load() != 2 {
		t.Errorf("%v, %d have ended", err, e.ended.Load())
	}
	m.Channels.Open = func(types.PID) (*os.File, func(), error) {
		return nil, nil, types.Errorf(types.ErrUnavailable, "Open", "", "no")
	}
	if _, err := m.Start(t.Context(), sh("true", io.Discard)); types.CodeOf(err) != types.ErrUnavailable {
		t.Error(err)
	}
}
