package step_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

func TestInputsThatCannotBeKeptAreRefusedByName(t *testing.T) {
	many := make([]step.Input, 1025)
	for i := range many {
		many[i].Name = fmt.Sprint("n", i)
	}
	big := strings.Repeat("x", step.MaxInput)
	for name, c := range map[string]struct {
		in   []step.Input
		says string // "" = accepted
	}{
		"none":          {nil, ""},
		"empty text":    {[]step.Input{{Name: "pipe"}}, ""},
		"odd names":     {[]step.Input{{Name: "a.b_c-D9"}, {Name: ".x"}, {Name: strings.Repeat("n", 64)}}, ""},
		"largest":       {[]step.Input{{Name: "a", Text: big}}, ""},
		"no name":       {[]step.Input{{Text: "x"}}, `"" is no name`},
		"a directory":   {[]step.Input{{Name: ".."}}, `".." is no name`},
		"a path":        {[]step.Input{{Name: "a/b"}}, `"a/b" is no name`},
		"a line":        {[]step.Input{{Name: "a\nb"}}, `is no name`},
		"long name":     {[]step.Input{{Name: strings.Repeat("n", 65)}}, `is no name`},
		"not ASCII":     {[]step.Input{{Name: "ä"}}, `is no name`},
		"twice":         {[]step.Input{{Name: "a"}, {Name: "b"}, {Name: "a"}}, "input a: it is given twice"},
		"too large":     {[]step.Input{{Name: "a", Text: big + "x"}}, "input a: it has 16777217 bytes"},
		"too large all": {[]step.Input{{Name: "a", Text: big}, {Name: "b", Text: big}, {Name: "c", Text: big}, {Name: "d", Text: big}, {Name: "e", Text: "x"}}, "67108865 bytes in all"},
		"too many":      {many, "1025 inputs"},
		"NUL":           {[]step.Input{{Name: "a", Text: "x\x00"}}, "input a: it is not text"},
		"no UTF-8":      {[]step.Input{{Name: "a", Text: "\xff"}}, "input a: it is not text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := step.CheckInputs(c.in)
			switch {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

func TestAnInputComesBackAsItWasOrIsDamaged(t *testing.T) {
	dir := t.TempDir()
	in := []step.Input{{Name: "pipe", Text: "one\ntwo"}, {Name: "empty"}}
	refs, err := step.WriteInputs(durable.OS, dir, in)
	if err != nil {
		t.Fatal(err)
	}
	for i, ref := range refs {
		if text, err := step.ReadInput(durable.OS, dir, ref); err != nil || text != in[i].Text {
			t.Errorf("%s: %q, %v", ref.Name, text, err)
		}
	}
	path := filepath.Join(dir, "inputs", "pipe")
	if err := os.WriteFile(path, []byte("one\ntwO"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := step.ReadInput(durable.OS, dir, refs[0]); types.CodeOf(err) != types.ErrStorage || !strings.Contains(err.Error(), path) {
		t.Errorf("damaged: %v", err)
	}
	to := t.TempDir()
	if damage, err := step.CopyInputs(durable.OS, dir, to, refs); err != nil || !strings.Contains(damage, "pipe") {
		t.Errorf("copied: %q, %v", damage, err)
	}
	if _, err := step.ReadInput(durable.OS, to, refs[1]); err != nil {
		t.Errorf("what could be copied: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := step.ReadInput(durable.OS, dir, refs[0]); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("removed: %v", err)
	}
}

// inputsOp gives a history inputs: a record that names them is never there without them.
func inputsOp() *faultfs.Op {
	spawned := func(j *step.Local, ack func(string)) error {
		refs, err := step.WriteInputs(j.FS(), j.Dir(histA), []step.Input{{Name: "pipe", Text: strings.Repeat("data ", 300)}, {Name: "b", Text: "small"}})
		if err != nil {
			return err
		}
		detail, err := json.Marshal(step.Settled{Inputs: refs})
		if err != nil {
			return err
		}
		return authored(j, histA, ack, func(a *author) {
			a.marker(step.Marker{Name: step.MarkerSpawn, PID: 3, Detail: detail})
			a.commit()
		})
	}
	return &faultfs.Op{Name: "inputs", Changing: []string{step.EpochFile}, Prepare: prepared(0, histA), Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error { return spawned(j, ack) })
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := crashtest.Sound(fsys, acked)
			dir := step.Dir(faultfs.DataDir, histA)
			h, herr := step.ReadSteps(fsys, dir, histA)
			if types.CodeOf(herr) == types.ErrNotFound {
				return err
			}
			err = errors.Join(err, herr)
			for _, r := range h.Records {
				var s step.Settled
				if r.Marker == nil || json.Unmarshal(r.Marker.Detail, &s) != nil {
					continue
				}
				for _, ref := range s.Inputs {
					_, rerr := step.ReadInput(fsys, dir, ref)
					err = errors.Join(err, rerr)
				}
			}
			return err
		}}
}
