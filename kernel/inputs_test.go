package kernel

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// blocks reads the inputs out of a first message as a model that trusts nothing but the mark would.
func blocks(t interface{ Fatalf(string, ...any) }, text string) map[string]string {
	_, after, ok := strings.Cut(text, "both with the mark ")
	if !ok {
		t.Fatalf("no mark in %q", text)
	}
	mark, after, _ := strings.Cut(after, ",")
	out := map[string]string{}
	for {
		head, rest, ok := strings.Cut(after, " begin "+mark+" (")
		if !ok {
			return out
		}
		label := head[strings.LastIndexByte(head, '\n')+1:]
		_, rest, _ = strings.Cut(rest, "\n")
		body, rest, ok := strings.Cut(rest, "\n"+label+" end "+mark)
		if !ok {
			t.Fatalf("%s does not end", label)
		}
		out[label], after = body, rest
	}
}

// Whatever the texts are, forged marks among them, each comes out of its own block.
func TestNoInputCanEndItsBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Input
		for i := range rapid.IntRange(1, 4).Draw(t, "n") {
			inputs = append(inputs, Input{Name: fmt.Sprint("n", i), Text: rapid.StringN(0, 60, -1).Draw(t, "text")})
		}
		// what an attacker would write who has seen the prompt of an earlier run
		old := firstMessage("do it", inputs, shownInputs)
		inputs = append(inputs, Input{Name: step.PipeInput, Text: old})
		got := blocks(t, firstMessage("do it", inputs, shownInputs))
		for _, in := range inputs {
			if g, ok := got[inputLabel(in.Name)]; !ok || g != strings.TrimSuffix(in.Text, "\n") && g != in.Text {
				t.Fatalf("%s: %q, want %q", in.Name, g, in.Text)
			}
		}
	})
}

func TestLongInputsAreCutWithinTheirRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var inputs []Input
		all := 0
		for i := range rapid.IntRange(1, 12).Draw(t, "n") {
			n := rapid.IntRange(0, 100_000).Draw(t, "size")
			inputs = append(inputs, Input{Name: fmt.Sprint("n", i), Text: strings.Repeat("ü", n/2)})
			all += len(inputs[i].Text)
		}
		room := rapid.IntRange(1, 200_000).Draw(t, "room")
		text := firstMessage("do it", inputs, room)
		limit := min(max(room, leastShown), shownInputs)
		if extra := len(text) - limit; extra > 600+300*len(inputs) {
			t.Fatalf("%d bytes for a room of %d", len(text), limit)
		}
		if !utf8.ValidString(text) {
			t.Fatal("cut within a character")
		}
		for label, body := range blocks(t, text) {
			name := strings.TrimSuffix(strings.TrimPrefix(label, "[INPUT "), "]")
			if cut := strings.Contains(body, "bytes left out"); cut != strings.Contains(body, "/proc/self/inputs/"+name) {
				t.Fatalf("%s: cut %v, and where the whole is, it does not say", name, cut)
			}
		}
		if all <= limit && all <= shownInput && strings.Contains(text, "left out") {
			t.Fatal("cut without need")
		}
	})
}

func TestInputsAreToldKeptAndRead(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprint("keeps ", keeps), func(t *testing.T) {
			store := &inputStore{memStore: &memStore{recs: map[types.UUID]*memRecord{}}, texts: map[string]string{}}
			s := newSys(t, func(c *Config) {
				c.Store = store
				if !keeps {
					c.Store = nil
				}
			})
			if err := s.cfg.Devices.Register("/proc", vfs.NewProcFS(s.Proc(), s.VFS()).Open); err != nil {
				t.Fatal(err)
			}
			s.model = untilKilled
			long := strings.Repeat("line\n", 20_000)
			pid := s.spawn(func(o *SpawnOpts) {
				o.Inputs = []Input{{Name: "pipe", Text: "from before"}, {Name: "long", Text: long}}
			})
			told, err := s.Proc().Context(pid)
			if err != nil || !strings.Contains(told, "do it\n\nWhat follows was handed over") || !strings.Contains(told, "[PIPE_INPUT] begin ") ||
				!strings.Contains(told, "\nfrom before\n") || !strings.Contains(told, "the whole input is the file /proc/self/inputs/long") {
				t.Errorf("told %v\n%s", err, told)
			}
			read := func(path string) string {
				f, err := s.OpenAs(pid, path, vfs.OpenRead)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				b, err := f.Read(0)
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			if got := read("/proc/self/inputs"); got != "pipe\nlong\n" {
				t.Errorf("listed %q", got)
			}
			if got := read("/proc/self/inputs/long"); got != long {
				t.Errorf("%d bytes, want %d", len(got), len(long))
			}
			if _, err := s.OpenAs(pid, "/proc/self/inputs/other", vfs.OpenRead); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "pipe, long") {
				t.Errorf("other: %v", err)
			}
		})
	}
}

// inputStore is a memStore that keeps inputs.
type inputStore struct {
	*memStore
	texts map[string]string
	fail  error
}

func (s *inputStore) SaveInputs(_ types.UUID, inputs []step.Input) (refs []step.InputRef, err error) {
	for i := range inputs {
		s.texts[inputs[i].Name] = inputs[i].Text
		refs = append(refs, inputs[i].Ref())
	}
	return refs, s.fail
}
func (s *inputStore) Input(_ types.UUID, ref step.InputRef) (string, error) {
	return s.texts[ref.Name], nil
}

func TestASpawnWhoseInputsCannotBeKeptLeavesNoTrace(t *testing.T) {
	store := &inputStore{memStore: &memStore{recs: map[types.UUID]*memRecord{}}, texts: map[string]string{}, fail: types.Errorf(types.ErrStorage, "Write", "x", "full")}
	s := newSys(t, func(c *Config) { c.Store = store })
	s.model = func(context.Context, vfs.Caller, int) (reply, error) { t.Error("it runs"); return reply{}, nil }
	for want, in := range map[types.ErrCode][]Input{types.ErrStorage: {{Name: "a"}}, types.ErrInvalid: {{Name: "a"}, {Name: "a"}}} {
		if _, err := s.Spawn("do it", nil, opts(func(o *SpawnOpts) { o.Inputs = in })); types.CodeOf(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if n := len(store.recs); n != 0 {
		t.Errorf("%d histories are left", n)
	}
}
