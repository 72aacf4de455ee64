package kernel

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

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

// pair makes two processes and a pipe between them.
func pair(t *testing.T) (s *sys, w, r types.PID, wfd, rfd types.FD) {
	t.Helper()
	s = newSys(t)
	s.model = untilKilled
	w, r = s.spawn(), s.spawn()
	wfd, rfd, err := s.Pipe(w, r)
	if err != nil {
		t.Fatal(err)
	}
	return s, w, r, wfd, rfd
}

// What holds of a pipe of Unix holds of this one.
func TestPipeBehavesAsInUnix(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD){
		"what was written before the close can be read, then comes the end, for good": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			_ = s.VFS().Write(t.Context(), w, wfd, []byte("left"))
			_ = s.VFS().Close(w, wfd)
			if got, err := s.read(r, rfd); got != "left" || err != nil {
				t.Errorf("%q %v", got, err)
			}
			if b, err := s.VFS().Read(r, rfd, 0); len(b) != 0 || err != io.EOF {
				t.Errorf("behind the end: %q %v", b, err)
			}
		},
		"a write without a reader is a broken pipe, and loses the writer nothing else": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			_ = s.VFS().Close(r, rfd)
			if err := s.VFS().Write(t.Context(), w, wfd, []byte("x")); types.CodeOf(err) != types.ErrBrokenPipe {
				t.Errorf("%v", err)
			}
			if p, ok := s.Process(w); !ok || p.State() != types.StateRunning {
				t.Error("the writer has ended")
			}
		},
		"a read waits for a byte and takes what is there": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			got := make(chan string)
			go func() {
				buf := make([]byte, 100)
				n, _ := s.VFS().ReadInto(t.Context(), r, rfd, buf)
				got <- string(buf[:n])
			}()
			synctest.Wait()
			_ = s.VFS().Write(t.Context(), w, wfd, []byte("few"))
			if g := <-got; g != "few" {
				t.Errorf("%q", g)
			}
		},
		"a writer that is killed in the middle of a write leaves what the pipe held": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			wrote := make(chan error)
			go func() { wrote <- s.VFS().Write(context.Background(), w, wfd, make([]byte, 100<<10)) }()
			synctest.Wait()
			_ = s.Kill(w, types.SIGKILL)
			if err := <-wrote; err == nil {
				t.Error("the write has succeeded")
			}
			if got, err := s.read(r, rfd); len(got) != 64<<10 || err != nil {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		},
		"a reader that is killed wakes the writer": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			wrote := make(chan error)
			go func() { wrote <- s.VFS().Write(context.Background(), w, wfd, make([]byte, 100<<10)) }()
			synctest.Wait()
			_ = s.Kill(r, types.SIGKILL)
			if err := <-wrote; types.CodeOf(err) != types.ErrBrokenPipe {
				t.Errorf("%v", err)
			}
		},
		"a reader that is paused holds the writer back until it goes on": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			p, _ := s.Process(r)
			read := 0
			_, err := p.SpawnThread("reads while it is not paused", func(th *Thread) {
				buf := make([]byte, 4<<10)
				for {
					if (Self{s.KernelImpl, p}).WaitIfPaused(th.Context()) != nil {
						return
					}
					n, err := s.VFS().ReadInto(th.Context(), r, rfd, buf)
					if read += n; err != nil {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // it waits for a byte
			_ = s.Signal(r, types.SIGPAUSE)
			wrote := false
			go func() {
				wrote = s.VFS().Write(t.Context(), w, wfd, make([]byte, 200<<10)) == nil
				_ = s.VFS().Close(w, wfd)
			}()
			synctest.Wait()
			if wrote || read > 4<<10 {
				t.Errorf("wrote %v, read %d", wrote, read)
			}
			_ = s.Signal(r, types.SIGRESUME)
			synctest.Wait()
			if !wrote || read != 200<<10 {
				t.Errorf("wrote %v, read %d", wrote, read)
			}
		},
		"a write ends with its context and has written what there was room for": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			ctx, cancel := context.WithCancel(t.Context())
			wrote := make(chan error)
			go func() { wrote <- s.VFS().Write(ctx, w, wfd, make([]byte, 100<<10)) }()
			synctest.Wait()
			cancel()
			if err := <-wrote; types.CodeOf(err) != types.ErrCancelled {
				t.Errorf("%v", err)
			}
			if b, err := s.VFS().Read(r, rfd, 0); len(b) != 64<<10 || err != nil {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		},
		"a read ends with its context": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if n, err := s.VFS().ReadInto(ctx, r, rfd, make([]byte, 1)); n != 0 || types.CodeOf(err) != types.ErrCancelled {
				t.Errorf("%d %v", n, err)
			}
		},
		"each end does its own only": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			if _, err := s.VFS().Read(w, wfd, 0); types.CodeOf(err) != types.ErrPermission {
				t.Errorf("reading from the writing end: %v", err)
			}
			if err := s.VFS().Write(t.Context(), r, rfd, []byte("x")); types.CodeOf(err) != types.ErrPermission {
				t.Errorf("writing to the reading end: %v", err)
			}
			if _, err := s.VFS().Read(r, rfd+1, 0); types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("no descriptor: %v", err)
			}
		},
		"nothing is written by an empty write, and nothing waited for by an empty read": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			if err := s.VFS().Write(t.Context(), w, wfd, nil); err != nil {
				t.Error(err)
			}
			if n, err := s.VFS().ReadInto(t.Context(), r, rfd, nil); n != 0 || err != nil {
				t.Errorf("%d %v", n, err)
			}
		},
		"a closed descriptor is none, also when it is closed twice": func(t *testing.T, s *sys, w, r types.PID, wfd, rfd types.FD) {
			if err := s.VFS().Close(w, wfd); err != nil {
				t.Error(err)
			}
			for _, err := range []error{s.VFS().Close(w, wfd), s.VFS().Write(t.Context(), w, wfd, nil)} {
				if types.CodeOf(err) != types.ErrInvalid {
					t.Error(err)
				}
			}
		},
		"a process can write to itself": func(t *testing.T, s *sys, w, _ types.PID, _, _ types.FD) {
			wfd, rfd, err := s.Pipe(w, w)
			if err != nil || wfd == rfd {
				t.Fatal(wfd, rfd, err)
			}
			_ = s.VFS().Write(t.Context(), w, wfd, []byte("me"))
			if b, err := s.VFS().Read(w, rfd, 1); string(b) != "m" || err != nil {
				t.Errorf("%q %v", b, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w, r, wfd, rfd := pair(t)
				do(t, s, w, r, wfd, rfd)
			})
		})
	}
}

func TestReadingIntoABufferMakesNoGarbage(t *testing.T) {
	s, w, r, wfd, rfd := pair(t)
	data, buf := make([]byte, 4<<10), make([]byte, 8<<10)
	n := testing.AllocsPerRun(100, func() {
		if err := s.VFS().Write(context.Background(), w, wfd, data); err != nil {
			t.Fatal(err)
		}
		if n, err := s.VFS().ReadInto(context.Background(), r, rfd, buf); n != len(data) || err != nil {
			t.Fatal(n, err)
		}
	})
	if n > 0 {
		t.Errorf("%v allocations for a write and a read", n)
	}
}
