package kernel

import (
	"io"
	"testing"

	"rnix/types"
	"rnix/vfs"
)

func TestPipeCarriesBytesAndEndsWithItsProcesses(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	w, r := s.spawn(), s.spawn()
	wfd, rfd, err := s.Pipe(w, r)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.VFS().Read(r, rfd, 0); len(b) != 0 || err != nil {
		t.Errorf("an empty pipe gave %q %v", b, err)
	}
	if err := s.VFS().Write(t.Context(), w, wfd, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if b, err := s.VFS().Read(r, rfd, 0); string(b) != "hello" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	f, err := s.VFS().File(r, rfd)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Kill(w, types.SIGKILL)
	if _, err := f.(vfs.WaitReader).WaitRead(t.Context(), make([]byte, 1)); err != io.EOF {
		t.Errorf("after the writer's end: %v", err)
	}
	w2 := s.spawn()
	wfd, _, err = s.Pipe(w2, r)
	if err != nil {
		t.Fatal(err)
	}
	end, err := s.VFS().File(w2, wfd)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Kill(r, types.SIGKILL)
	if _, err := s.Wait(r); err != nil {
		t.Fatal(err)
	}
	if err := end.Write(t.Context(), []byte("x")); types.CodeOf(err) != types.ErrBrokenPipe {
		t.Errorf("after the reader's end: %v", err)
	}
	if _, _, err := s.Pipe(w2, r); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("a pipe to the dead: %v", err)
	}
	if l := s.VFS().List(w2); len(l) != 2 { // the model and the one writing end
		t.Errorf("a failed pipe left %v", l)
	}
}
