package vfs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"rnix/types"
	"rnix/vfs"
)

// counted is a file that counts itself.
type counted struct {
	open   *atomic.Int64
	closed atomic.Bool
	fail   error // of Close
}

func (c *counted) Read(int) ([]byte, error)            { return nil, io.EOF }
func (c *counted) Write(context.Context, []byte) error { return nil }
func (c *counted) Stat() (vfs.FileStat, error)         { return vfs.FileStat{Name: "counted"}, nil }
func (c *counted) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.fail
}

// counting returns a VFS with one device, /c, and how many of its files are open.
func counting(t testing.TB) (*vfs.VFS, *atomic.Int64) {
	t.Helper()
	open := new(atomic.Int64)
	r := vfs.NewDeviceRegistry()
	if err := r.Register("/c", func(sub string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
		open.Add(1)
		c := &counted{open: open}
		if strings.HasPrefix(sub, "/fails") {
			c.fail = errors.New(sub)
		}
		return c, nil
	}); err != nil {
		t.Fatal(err)
	}
	return vfs.New(r, nil), open
}

func TestOpenAfterCloseAllIsRefused(t *testing.T) {
	v, open := counting(t)
	if _, err := v.Open(1, "/c", vfs.OpenRead); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("open before Admit: %v", err)
	}
	v.Admit(1)
	for range 3 {
		if _, err := v.Open(1, "/c", vfs.OpenRead); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.CloseAll(1); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Open(1, "/c", vfs.OpenRead); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("open after CloseAll: %v", err)
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d files are still open", n)
	}
	if err := v.CloseAll(1); err != nil {
		t.Errorf("a second CloseAll: %v", err)
	}
}

// TestOpenUnderWayDuringCloseAllLeaksNothing lets the device's open last until the process has ended.
func TestOpenUnderWayDuringCloseAllLeaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := new(atomic.Int64)
		goOn := make(chan struct{})
		r := vfs.NewDeviceRegistry()
		if err := r.Register("/slow", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			<-goOn
			open.Add(1)
			return &counted{open: open}, nil
		}); err != nil {
			t.Fatal(err)
		}
		v := vfs.New(r, nil)
		v.Admit(1)
		opened := make(chan error, 1)
		go func() { // ends below
			_, err := v.Open(1, "/slow", vfs.OpenRead)
			opened <- err
		}()
		synctest.Wait()
		if err := v.CloseAll(1); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		if err := <-opened; types.CodeOf(err) != types.ErrCancelled {
			t.Errorf("got %v", err)
		}
		if n := open.Load(); n != 0 {
			t.Errorf("%d files are still open", n)
		}
	})
}

// TestKillEndsACallUnderWay: the end of a process, and the end of its context, end a write that waits;
// a read never waits.
func TestKillEndsACallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := vfs.NewDeviceRegistry()
		if err := r.Register("/hang", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			return vfs.NewRequestFile(vfs.FileStat{}, func(ctx context.Context, _ vfs.Caller, _ []byte) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}), nil
		}); err != nil {
			t.Fatal(err)
		}
		v := vfs.New(r, nil)
		killed := errors.New("killed")
		for name, end := range map[string]func(context.CancelCauseFunc){
			"context":  func(cancel context.CancelCauseFunc) { cancel(killed) },
			"closeall": func(context.CancelCauseFunc) { _ = v.CloseAll(1) },
		} {
			v.Admit(1)
			fd, err := v.Open(1, "/hang", vfs.OpenReadWrite)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- v.Write(ctx, 1, fd, []byte("{}")) }() // ends below
			synctest.Wait()
			if _, err := v.Read(1, fd, 10); types.CodeOf(err) != types.ErrInvalid {
				t.Errorf("%s: a read before the answer: %v", name, err)
			}
			if err := v.Write(t.Context(), 1, fd, nil); types.CodeOf(err) != types.ErrConflict {
				t.Errorf("%s: a second write: %v", name, err)
			}
			end(cancel)
			err = <-ended
			var e *types.SyscallError
			if types.CodeOf(err) != types.ErrCancelled || !errors.As(err, &e) || e.PID != 1 || e.Device != "/hang" || e.Syscall != "Write" {
				t.Errorf("%s: got %v (%+v)", name, err, e)
			}
			if name == "context" && !errors.Is(err, killed) {
				t.Errorf("the cause is lost: %v", err)
			}
			cancel(nil)
			_ = v.CloseAll(1) // of the first round
		}
	})
}

func TestErrorsNameProcessAndPath(t *testing.T) {
	v, _ := counting(t)
	v.Admit(5)
	_, err := v.Open(5, "/none", vfs.OpenRead)
	if got, want := err.Error(), "Open /none (pid 5): no such device"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	fd, err := v.Open(5, "/c/x", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Write(t.Context(), 5, fd, nil); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("write to a file that was opened for reading: %v", err)
	}
	for _, err := range []error{v.Close(5, 99), v.Close(6, fd), v.Write(t.Context(), 5, 1, nil)} {
		if types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("bad descriptor: %v", err)
		}
	}
}

func TestCloseAllReportsEveryFailureInOrder(t *testing.T) {
	v, open := counting(t)
	v.Admit(1)
	for _, p := range []string{"/c/fails-a", "/c", "/c/fails-b"} {
		if _, err := v.Open(1, p, vfs.OpenRead); err != nil {
			t.Fatal(err)
		}
	}
	err := v.CloseAll(1)
	if err == nil || !strings.Contains(err.Error(), "fails-a") || strings.Index(err.Error(), "fails-b") < strings.Index(err.Error(), "fails-a") {
		t.Errorf("got %v", err)
	}
	if open.Load() != 0 {
		t.Error("a failure keeps the other files open")
	}
}

// TestTheTableOfFilesIsItsModel runs random histories of processes against a map.
func TestTheTableOfFilesIsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v, open := counting(t)
		model := make(map[types.PID]map[types.FD]string)
		next := make(map[types.PID]types.FD)
		pids := rapid.SampledFrom([]types.PID{1, 2, 3})
		rt.Repeat(map[string]func(*rapid.T){
			"admit": func(rt *rapid.T) {
				pid := pids.Draw(rt, "pid")
				v.Admit(pid)
				if model[pid] == nil {
					model[pid], next[pid] = make(map[types.FD]string), types.FirstFD
				}
			},
			"open": func(rt *rapid.T) {
				pid := pids.Draw(rt, "pid")
				path := fmt.Sprintf("/c/%d", rapid.IntRange(0, 3).Draw(rt, "path"))
				fd, err := v.Open(pid, path, vfs.OpenReadWrite)
				if model[pid] == nil {
					if err == nil {
						rt.Fatalf("process %d has ended and opened %d", pid, fd)
					}
					return
				}
				if err != nil || fd != next[pid] {
					rt.Fatalf("open: %d, %v; want %d", fd, err, next[pid])
				}
				model[pid][fd] = path
				next[pid]++
			},
			"close": func(rt *rapid.T) {
				pid, fd := pids.Draw(rt, "pid"), types.FD(rapid.IntRange(0, 8).Draw(rt, "fd"))
				_, has := model[pid][fd]
				if err := v.Close(pid, fd); (err == nil) != has {
					rt.Fatalf("close %d of %d: %v, open: %v", fd, pid, err, has)
				}
				delete(model[pid], fd)
			},
			"closeAll": func(rt *rapid.T) {
				pid := pids.Draw(rt, "pid")
				if err := v.CloseAll(pid); err != nil {
					rt.Fatal(err)
				}
				delete(model, pid)
			},
			"": func(rt *rapid.T) {
				total := 0
				for _, pid := range []types.PID{1, 2, 3} {
					var want []vfs.FDInfo
					for fd, path := range model[pid] {
						want = append(want, vfs.FDInfo{FD: fd, Path: path})
						if _, err := v.Stat(pid, fd); err != nil {
							rt.Fatalf("stat %d of %d: %v", fd, pid, err)
						}
					}
					slices.SortFunc(want, func(a, b vfs.FDInfo) int { return int(a.FD - b.FD) })
					if got := v.List(pid); !slices.Equal(got, want) {
						rt.Fatalf("process %d: got %v, want %v", pid, got, want)
					}
					total += len(want)
				}
				if n := open.Load(); int(n) != total {
					rt.Fatalf("%d files are open, %d are listed", n, total)
				}
			},
		})
	})
}
