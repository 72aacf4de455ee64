package pipe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// Whatever is written in whatever pieces comes out in order, once.
func TestBytesComeOutInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Pipe
		var in, out []byte
		next := byte(0)
		for range rapid.IntRange(1, 40).Draw(t, "ops") {
			if rapid.Bool().Draw(t, "write") {
				data := make([]byte, min(rapid.IntRange(0, 30000).Draw(t, "n"), Size-p.Len()))
				for i := range data {
					data[i] = next
					next++
				}
				if n, err := p.Write(context.Background(), data); n != len(data) || err != nil {
					t.Fatal(n, err)
				}
				in = append(in, data...)
				continue
			}
			buf := make([]byte, rapid.IntRange(1, 40000).Draw(t, "buf"))
			n, err := p.TryRead(buf)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, buf[:n]...)
		}
		p.CloseWrite()
		buf := make([]byte, Size)
		for {
			n, err := p.Read(context.Background(), buf)
			out = append(out, buf[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(in, out) {
			t.Fatalf("%d bytes in, %d out", len(in), len(out))
		}
	})
}

func TestFullPipeHoldsTheWriterUntilHalfIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pipe
		wrote := false
		go func() {
			if n, err := p.Write(t.Context(), make([]byte, Size+10)); n != Size+10 || err != nil {
				t.Error(n, err)
			}
			wrote = true
		}()
		synctest.Wait()
		if wrote || p.Len() != Size {
			t.Fatalf("wrote %v, %d bytes", wrote, p.Len())
		}
		_, _ = p.TryRead(make([]byte, Size/4))
		synctest.Wait()
		if wrote {
			t.Error("the writer was woken for a quarter")
		}
		_, _ = p.TryRead(make([]byte, Size/4))
		synctest.Wait()
		if !wrote {
			t.Error("the writer still waits")
		}
	})
}

func TestClosedEndsWakeTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a, b, c Pipe
		results := make(chan error, 3)
		go func() { _, err := a.Write(t.Context(), make([]byte, 2*Size)); results <- err }()
		go func() { _, err := b.Read(t.Context(), make([]byte, 1)); results <- err }()
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		go func() { _, err := c.Read(ctx, make([]byte, 1)); results <- err }()
		synctest.Wait()
		a.CloseRead()
		if err := <-results; err != ErrBroken {
			t.Errorf("write: %v", err)
		}
		b.CloseWrite()
		if err := <-results; err != io.EOF {
			t.Errorf("read: %v", err)
		}
		cancel(stopped)
		if err := <-results; err != stopped {
			t.Errorf("cancelled read: %v", err)
		}
	})
}

// Row 6 of performance.md: two memcpys, the ring, and io.Pipe.
func BenchmarkPipe(b *testing.B) {
	for name, size := range map[string]int{"64B": 64, "4KiB": 4 << 10, "64KiB": 64 << 10} {
		src, dst, mid := make([]byte, size), make([]byte, size), make([]byte, size)
		b.Run("memcpy/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(mid, src)
				copy(dst, mid)
			}
		})
		b.Run("rnix/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			var p Pipe
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				buf := make([]byte, Size)
				for {
					if _, err := p.Read(context.Background(), buf); err != nil {
						return
					}
				}
			}()
			for b.Loop() {
				if _, err := p.Write(context.Background(), src); err != nil {
					b.Fatal(err)
				}
			}
			p.CloseWrite()
			<-ended
		})
	}
}
