package peers

import (
	"context"
	"errors"
	"io"
	"testing"

	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// BenchmarkPipe is a write to a pipe of which somebody else reads what comes. Ours goes from one process to
// another through their descriptors.
func BenchmarkPipe(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"64B", 64}, {"4KiB", 4 << 10}, {"64KiB", 64 << 10}} {
		data := make([]byte, size.n)
		b.Run("bare/"+size.name, func(b *testing.B) { // two copies in memory
			between, to := make([]byte, size.n), make([]byte, size.n)
			m := measure(b)
			m.start()
			for range b.N {
				copy(between, data)
				copy(to, between)
			}
			m.stop()
			m.report(1)
		})
		b.Run("rnix/"+size.name, func(b *testing.B) {
			k := newKernel(b)
			opened, fd := make(chan struct{}), types.FD(0)
			reader := spawn(b, k, 0, func(ctx context.Context, k *kernel.KernelImpl, p *kernel.Process) {
				<-opened
				drain(ctx, b, k, p, fd)
			})
			ended := make(chan struct{})
			defer close(ended)
			writer := spawn(b, k, 0, func(context.Context, *kernel.KernelImpl, *kernel.Process) { <-ended })
			w, r, err := k.Pipe(writer, reader)
			if err != nil {
				b.Fatal(err)
			}
			p, _ := k.Process(reader)
			fd = r
			close(opened)
			m := measure(b)
			m.start()
			for range b.N {
				if err := k.VFS().Write(context.Background(), writer, w, data); err != nil {
					b.Fatal(err)
				}
			}
			if err := k.VFS().Close(writer, w); err != nil {
				b.Fatal(err)
			}
			<-p.Left()
			m.stop()
			m.report(1)
		})
		b.Run("io.Pipe/"+size.name, func(b *testing.B) {
			r, w := io.Pipe()
			done := make(chan struct{})
			go func() { // ends with the writer
				defer close(done)
				for buf := make([]byte, 64<<10); ; {
					if _, err := r.Read(buf); err != nil {
						return
					}
				}
			}()
			m := measure(b)
			m.start()
			for range b.N {
				if _, err := w.Write(data); err != nil {
					b.Fatal(err)
				}
			}
			_ = w.Close() // it never fails
			<-done
			m.stop()
			m.report(1)
		})
	}
}

// drain reads a pipe to its end.
func drain(ctx context.Context, b *testing.B, k *kernel.KernelImpl, p *kernel.Process, fd types.FD) {
	f, err := k.VFS().File(p.PID, fd)
	if err != nil {
		b.Error(err)
		return
	}
	r, ok := f.(vfs.WaitReader)
	if !ok {
		b.Error("the end of a pipe does not wait")
		return
	}
	for buf := make([]byte, 64<<10); ; {
		if _, err := r.WaitRead(ctx, buf); err != nil {
			if !errors.Is(err, io.EOF) {
				b.Error(err)
			}
			return
		}
	}
}
