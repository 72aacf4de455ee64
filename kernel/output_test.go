package kernel

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"rnix/types"
	"rnix/vfs"
)

// read reads a pipe to its end.
func (s *sys) read(pid types.PID, fd types.FD) (string, error) {
	var out strings.Builder
	buf := make([]byte, 1000)
	for {
		n, err := s.VFS().ReadInto(s.t.Context(), pid, fd, buf)
		out.Write(buf[:n])
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return out.String(), err
		}
	}
}

func played(notes ...note) string {
	var out strings.Builder
	transcript(func() (note, bool) {
		if len(notes) == 0 {
			return note{}, false
		}
		n := notes[0]
		notes = notes[1:]
		return n, true
	}, func(s string) { out.WriteString(s) })
	return out.String()
}

func TestTranscriptGivesEachAnswerOnce(t *testing.T) {
	ask := note{kind: asked}
	for name, c := range map[string]struct {
		notes []note
		want  string
	}{
		"nothing":                   {nil, ""},
		"said without pieces":       {[]note{ask, {said, "a"}, {result, "a"}}, "a\n"},
		"in pieces":                 {[]note{ask, {piece, "a "}, {piece, "b"}, {said, "a b"}, {result, "a b"}}, "a b\n"},
		"the rest comes at the end": {[]note{ask, {piece, "a "}, {said, "a b\n"}}, "a b\n"},
		"calls only":                {[]note{ask, {said, ""}, ask, {said, "x"}}, "x\n"},
		"another result":            {[]note{ask, {said, "x"}, {result, "the result"}}, "x\nthe result\n"},
		"no result":                 {[]note{ask, {said, "x"}, {result, ""}}, "x\n"},
		"begun in the middle":       {[]note{{piece, "b"}, {said, "a b"}}, "a b\n"},
		"again, word for word":      {[]note{ask, {piece, "a b"}, ask, {piece, "a"}, {piece, " b c"}, {said, "a b c"}}, "a b c\n"},
		"again, shorter":            {[]note{ask, {piece, "a b"}, ask, {piece, "a"}, {said, "a"}}, "a b" + begunAnew + "a\n"},
		"again, otherwise":          {[]note{ask, {piece, "a b"}, ask, {piece, "a c"}, {piece, " d"}, {said, "a c d"}}, "a b" + begunAnew + "a c d\n"},
		"repeated by the device":    {[]note{ask, {piece, "Hel"}, {piece, "Hello"}, {said, "Hello"}}, "HelHello" + begunAnew + "Hello\n"},
		"what was said before":      {[]note{{said, "one"}, {said, "two"}, {piece, "ee"}, {said, "three"}, ask, {piece, "fo"}, {said, "four"}}, "one\ntwo\nthree\nfour\n"},
	} {
		if got := played(c.notes...); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever is cut off and asked again, every answer that was given stands in the transcript, in order.
func TestTranscriptHasEveryAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var notes []note
		var answers []string
		for range rapid.IntRange(0, 5).Draw(t, "answers") {
			answer := rapid.StringMatching(`[ab]{0,12}`).Draw(t, "answer")
			for range rapid.IntRange(1, 3).Draw(t, "attempts") {
				notes = append(notes, note{kind: asked})
				text := rapid.SampledFrom([]string{answer, answer[:len(answer)/2], "ab"}).Draw(t, "attempt")
				for i := 0; i < len(text); {
					j := rapid.IntRange(i+1, len(text)).Draw(t, "piece")
					notes = append(notes, note{piece, text[i:j]})
					i = j
				}
			}
			notes = append(notes, note{said, answer})
			answers = append(answers, answer)
		}
		rest := played(notes...)
		for _, a := range answers {
			_, after, ok := strings.Cut(rest, a)
			if !ok {
				t.Fatalf("%q is missing in %q", a, played(notes...))
			}
			rest = after
		}
	})
}

func TestOutputOfOneProcessIsReadByAnotherUpToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSys(t)
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "out", nil }
		release := make(chan struct{})
		s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
			switch {
			case c.PID == 1:
				return untilKilled(ctx, c, turn)
			case turn == 1:
				return reply{Content: "I look.", Calls: []string{"tool {}"}}, nil
			case turn == 2:
				<-release
				return reply{Calls: []string{"tool {}"}}, nil
			}
			return reply{Content: "All is well."}, nil
		}
		reader, writer := s.spawn(), s.spawn()
		synctest.Wait() // it has said something already
		fd, err := s.PipeOutput(writer, reader)
		if err != nil {
			t.Fatal(err)
		}
		threads, err := s.Proc().Threads(writer)
		if err != nil || len(threads) != 2 || threads[0].Intent != "output to PID 1" || threads[1].Kind != "coroutine" {
			t.Errorf("%+v %v", threads, err)
		}
		if l := s.VFS().List(writer); !slices.ContainsFunc(l, func(i vfs.FDInfo) bool { return i.Path == "pipe" }) {
			t.Errorf("the writer has %v", l)
		}
		close(release)
		if got, err := s.read(reader, fd); got != "I look.\nAll is well.\n" || err != nil {
			t.Errorf("%q %v", got, err)
		}
		if i, err := s.WaitInfo(t.Context(), writer); err != nil || i.Result != "All is well." {
			t.Errorf("%+v %v", i, err)
		}
	})
}

// A reader that does not read holds the writer back; when it goes, or the writer is killed, that is over.
func TestASlowReaderHoldsTheWriterBack(t *testing.T) {
	big := strings.Repeat("x", 200_000)
	for name, end := range map[string]func(s *sys, writer, reader types.PID, fd types.FD) int{
		"it reads": func(s *sys, _, reader types.PID, fd types.FD) int {
			if got, err := s.read(reader, fd); len(got) != 2*len(big)+2 || err != nil {
				s.t.Errorf("%d bytes, %v", len(got), err)
			}
			return types.ExitOK
		},
		"it closes": func(s *sys, _, reader types.PID, fd types.FD) int {
			if err := s.VFS().Close(reader, fd); err != nil {
				s.t.Error(err)
			}
			return types.ExitOK
		},
		"it is killed": func(s *sys, _, reader types.PID, _ types.FD) int {
			_ = s.Kill(reader, types.SIGKILL)
			return types.ExitOK
		},
		"the writer is killed": func(s *sys, writer, reader types.PID, fd types.FD) int {
			_ = s.Kill(writer, types.SIGKILL)
			synctest.Wait()
			if got, err := s.read(reader, fd); len(got) != 64<<10 || err != nil { // what the pipe held
				s.t.Errorf("%d bytes, %v", len(got), err)
			}
			return types.ExitCancelled
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSys(t)
				go0 := make(chan struct{})
				turns := 0
				s.model = func(ctx context.Context, c vfs.Caller, turn int) (reply, error) {
					if c.PID == 1 {
						return untilKilled(ctx, c, turn)
					}
					<-go0
					if turns = turn; turn == 1 {
						return reply{Content: big, Calls: []string{`plan {"steps":["x"]}`}}, nil
					}
					return reply{Content: big}, nil
				}
				reader, writer := s.spawn(), s.spawn()
				fd, err := s.PipeOutput(writer, reader)
				if err != nil {
					t.Fatal(err)
				}
				close(go0)
				synctest.Wait()
				if i, err := s.Info(writer); err != nil || turns != 1 || i.Wait != "for the reader of its output" {
					t.Errorf("turn %d, waits %q, %v", turns, i.Wait, err)
				}
				code := end(s, writer, reader, fd)
				if e, err := s.Wait(writer); err != nil || e.Code != code {
					t.Errorf("%v %v", e, err)
				}
			})
		})
	}
}

func TestPipeOutputRefusesWhatHasNoOutput(t *testing.T) {
	s := newSys(t)
	_, pid := s.running()
	before := len(s.VFS().List(pid))
	for _, c := range []struct {
		writer, reader types.PID
		code           types.ErrCode
	}{{99, pid, types.ErrNotFound}, {pid, 99, types.ErrNotFound}} {
		if _, err := s.PipeOutput(c.writer, c.reader); types.CodeOf(err) != c.code {
			t.Errorf("%+v: %v", c, err)
		}
	}
	sup, err := s.SpawnContext(t.Context(), "keep running", nil, SpawnOpts{Body: idler{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PipeOutput(sup, pid); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a program: %v", err)
	}
	if n := len(s.VFS().List(pid)); n != before {
		t.Errorf("%d descriptors are left", n-before)
	}
}

// Pieces arrive before the answer is whole.
func TestOutputIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(outlet)
		chunks := make(chan string)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			transcript(func() (note, bool) { return o.next(ctx) }, func(s string) { chunks <- s })
		}()
		o.put(note{kind: asked})
		o.put(note{piece, "now"})
		if got := <-chunks; got != "now" {
			t.Errorf("%q", got)
		}
		synctest.Wait()
		if o.behind() {
			t.Error("everything was handed over")
		}
		cancel(errors.New("over"))
		<-ended
	})
}
