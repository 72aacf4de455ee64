package mailbox

import (
	"context"
	"testing"
)

// Row 3a of performance.md: one sender, one receiver. Both queues hold as many messages.
func BenchmarkSend(b *testing.B) {
	b.Run("channel", func(b *testing.B) {
		c := make(chan int, DefaultMax)
		done := make(chan struct{})
		go func() { // ends with c
			defer close(done)
			for range c {
			}
		}()
		for b.Loop() {
			c <- 1
		}
		close(c)
		<-done
	})
	b.Run("rnix", func(b *testing.B) {
		var box Box[int]
		done := make(chan struct{})
		go func() { // ends with the box
			defer close(done)
			for {
				if _, err := box.Get(context.Background()); err != nil {
					return
				}
			}
		}()
		b.ReportAllocs()
		for b.Loop() {
			if err := box.PutWait(context.Background(), 1); err != nil {
				b.Fatal(err)
			}
		}
		box.Close()
		<-done
	})
}

// Row 3b: a message and its answer.
func BenchmarkPingPong(b *testing.B) {
	b.Run("channel", func(b *testing.B) {
		ping, pong := make(chan int), make(chan int)
		go func() { // ends with ping
			for v := range ping {
				pong <- v
			}
		}()
		for b.Loop() {
			ping <- 1
			<-pong
		}
		close(ping)
	})
	b.Run("rnix", func(b *testing.B) {
		var ping, pong Box[int]
		done := make(chan struct{})
		go func() { // ends with ping
			defer close(done)
			for {
				v, err := ping.Get(context.Background())
				if err != nil || pong.Put(v) != nil {
					return
				}
			}
		}()
		b.ReportAllocs()
		for b.Loop() {
			if err := ping.Put(1); err != nil {
				b.Fatal(err)
			}
			if _, err := pong.Get(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
		ping.Close()
		<-done
	})
}

// Row 3c: 1,000 senders and one receiver. Both queues hold as many messages, and a sender waits for room.
func BenchmarkFanIn1000(b *testing.B) {
	const n = 1000
	// share calls send in n goroutines, b.N times in all.
	share := func(b *testing.B, send func()) {
		for i := range n {
			go func() { // ends with its share
				for range (b.N + i) / n {
					send()
				}
			}()
		}
	}
	b.Run("channel", func(b *testing.B) {
		c := make(chan int, DefaultMax)
		share(b, func() { c <- 1 })
		for range b.N {
			<-c
		}
	})
	b.Run("rnix", func(b *testing.B) {
		var box Box[int]
		b.ReportAllocs()
		share(b, func() {
			if err := box.PutWait(context.Background(), 1); err != nil {
				b.Error(err)
			}
		})
		for range b.N {
			if _, err := box.Get(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
