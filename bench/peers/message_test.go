package peers

import (
	"context"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"rnix/kernel"
	"rnix/types"
)

// room is how many messages a box of ours holds; the channels have as much. An actor's box has no bound.
const room = 1024

// payload is what is sent. A message of one byte, and nothing else, ends a receiver.
var payload, enough = []byte("hello"), []byte{0}

func ends(data []byte) bool { return len(data) == 1 }

// receive takes messages until one says that it is enough.
func receive(b *testing.B, k *kernel.KernelImpl, p *kernel.Process, each func(*kernel.Message)) {
	for {
		m, err := k.Recv(p.PID)
		if err != nil {
			b.Error(err)
			return
		}
		if ends(m.Data) {
			return
		}
		each(m)
	}
}

// put sends a message, as soon as there is room.
func put(b *testing.B, k *kernel.KernelImpl, from, to types.PID, data []byte) {
	if err := k.SendContext(context.Background(), from, to, data); err != nil {
		b.Error(err)
	}
}

// BenchmarkSend is a message one way, from one to another; it is over when all have arrived.
func BenchmarkSend(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		c, done := make(chan []byte, room), make(chan struct{})
		go func() { // ends with c
			defer close(done)
			for range c {
			}
		}()
		m := measure(b)
		m.start()
		for range b.N {
			c <- payload
		}
		close(c)
		<-done
		m.stop()
		m.report(1)
	})
	b.Run("rnix", func(b *testing.B) {
		k := newKernel(b)
		to := spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
			receive(b, k, p, func(*kernel.Message) {})
		})
		p, _ := k.Process(to)
		m := measure(b)
		m.start()
		for range b.N {
			put(b, k, 0, to, payload)
		}
		put(b, k, 0, to, enough)
		<-p.Left()
		m.stop()
		m.report(1)
	})
	b.Run("protoactor", func(b *testing.B) {
		s, done := newSystem(b), make(chan struct{})
		left := b.N
		pid := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().([]byte); ok {
				if left--; left == 0 {
					close(done)
				}
			}
		}))
		m := measure(b)
		m.start()
		for range b.N {
			s.Root.Send(pid, payload)
		}
		<-done
		m.stop()
		m.report(1)
	})
}

// BenchmarkPingPong is a message and its answer, between two of a kind.
func BenchmarkPingPong(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		ping, pong := make(chan []byte), make(chan []byte)
		go func() { // ends with ping
			for data := range ping {
				pong <- data
			}
		}()
		m := measure(b)
		m.start()
		for range b.N {
			ping <- payload
			<-pong
		}
		m.stop()
		close(ping)
		m.report(1)
	})
	b.Run("rnix", func(b *testing.B) {
		k := newKernel(b)
		answer := spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
			receive(b, k, p, func(m *kernel.Message) { put(b, k, p.PID, m.From, m.Data) })
		})
		begin := make(chan struct{})
		ask := spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
			<-begin
			for range b.N {
				put(b, k, p.PID, answer, payload)
				if _, err := k.Recv(p.PID); err != nil {
					b.Error(err)
				}
			}
		})
		p, _ := k.Process(ask)
		m := measure(b)
		m.start()
		close(begin)
		<-p.Left()
		m.stop()
		put(b, k, 0, answer, enough)
		m.report(1)
	})
	b.Run("protoactor", func(b *testing.B) {
		s, done := newSystem(b), make(chan struct{})
		answer := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if data, ok := c.Message().([]byte); ok {
				c.Respond(data)
			}
		}))
		type begin struct{}
		left := b.N
		ask := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			switch c.Message().(type) {
			case begin:
				c.Request(answer, payload)
			case []byte:
				if left--; left > 0 {
					c.Request(answer, payload)
				} else {
					close(done)
				}
			}
		}))
		m := measure(b)
		m.start()
		s.Root.Send(ask, begin{})
		<-done
		m.stop()
		m.report(1)
	})
}

// share is what the i-th of many has of n.
func share(n, i int) int { return (n + i) / many }

// BenchmarkFanIn is a thousand senders, each one of a kind, and one receiver.
func BenchmarkFanIn(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		c, begin := make(chan []byte, room), make(chan struct{})
		for i := range many {
			go func() { // ends with its share
				<-begin
				for range share(b.N, i) {
					c <- payload
				}
			}()
		}
		m := measure(b)
		m.start()
		close(begin)
		for range b.N {
			<-c
		}
		m.stop()
		m.report(1)
	})
	b.Run("rnix", func(b *testing.B) {
		k, begin, over := newKernel(b), make(chan struct{}), make(chan struct{})
		defer close(over)
		to := spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
			for range b.N {
				if _, err := k.Recv(p.PID); err != nil {
					b.Error(err)
				}
			}
		})
		for i := range many {
			spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
				<-begin
				for range share(b.N, i) {
					put(b, k, p.PID, to, payload)
				}
				<-over // their ends are not measured
			})
		}
		p, ok := k.Process(to)
		m := measure(b)
		m.start()
		close(begin)
		if ok {
			<-p.Left()
		}
		m.stop()
		m.report(1)
	})
	b.Run("protoactor", func(b *testing.B) {
		s, done := newSystem(b), make(chan struct{})
		left := b.N
		to := s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
			if _, ok := c.Message().([]byte); ok {
				if left--; left == 0 {
					close(done)
				}
			}
		}))
		type begin struct{}
		from := make([]*actor.PID, many)
		for i := range from {
			from[i] = s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().(begin); ok {
					for range share(b.N, i) {
						c.Send(to, payload)
					}
				}
			}))
		}
		m := measure(b)
		m.start()
		for _, pid := range from {
			s.Root.Send(pid, begin{})
		}
		<-done
		m.stop()
		m.report(1)
	})
}

// BenchmarkBroadcast is one message to each of a thousand members; it is over when all have taken it.
func BenchmarkBroadcast(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		var took sync.WaitGroup
		members := make([]chan []byte, many)
		for i := range members {
			members[i] = make(chan []byte)
			go func() { // ends with its channel
				for range members[i] {
					took.Done()
				}
			}()
		}
		m := measure(b)
		m.start()
		for range b.N {
			took.Add(many)
			for _, c := range members {
				c <- payload
			}
			took.Wait()
		}
		m.stop()
		for _, c := range members {
			close(c)
		}
		m.report(many)
	})
	b.Run("rnix", func(b *testing.B) {
		const group = 1
		var took sync.WaitGroup
		k := newKernel(b)
		for range many {
			pid := spawn(b, k, 0, func(_ context.Context, k *kernel.KernelImpl, p *kernel.Process) {
				receive(b, k, p, func(*kernel.Message) { took.Done() })
			})
			if err := k.JoinGroup(pid, group); err != nil {
				b.Fatal(err)
			}
		}
		send := func(data []byte) {
			members, err := k.GetProcGroup(group)
			if err != nil {
				b.Fatal(err)
			}
			for _, pid := range members {
				put(b, k, 0, pid, data)
			}
		}
		m := measure(b)
		m.start()
		for range b.N {
			took.Add(many)
			send(payload)
			took.Wait()
		}
		m.stop()
		send(enough)
		m.report(many)
	})
	b.Run("protoactor", func(b *testing.B) {
		var took sync.WaitGroup
		s := newSystem(b)
		members := make([]*actor.PID, many)
		for i := range members {
			members[i] = s.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
				if _, ok := c.Message().([]byte); ok {
					took.Done()
				}
			}))
		}
		all := actor.NewPIDSet(members...) // what its router for broadcasts goes over
		m := measure(b)
		m.start()
		for range b.N {
			took.Add(many)
			all.ForEach(func(_ int, pid *actor.PID) { s.Root.Send(pid, payload) })
			took.Wait()
		}
		m.stop()
		m.report(many)
	})
}
