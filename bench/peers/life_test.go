package peers

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"rnix/kernel"
	"rnix/types"
)

// nothing is the run of a process that ends at once.
func nothing(context.Context, *kernel.KernelImpl, *kernel.Process) {}

// ignore is an actor that does nothing.
func ignore(actor.Context) {}

// waitFor waits for an actor to be gone.
func waitFor(b *testing.B, f *actor.Future) {
	if err := f.Wait(); err != nil && !errors.Is(err, actor.ErrDeadLetter) {
		b.Error(err)
	}
}

// BenchmarkSpawn is a start, an end and the wait for it, one after the other.
func BenchmarkSpawn(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		m := measure(b)
		m.start()
		for range b.N {
			done := make(chan struct{})
			go func() { close(done) }()
			<-done
		}
		m.stop()
		m.report(1)
	})
	b.Run("rnix", func(b *testing.B) {
		k := newKernel(b)
		m := measure(b)
		m.start()
		for range b.N {
			if _, err := k.Wait(spawn(b, k, 0, nothing)); err != nil {
				b.Fatal(err)
			}
		}
		m.stop()
		m.report(1)
	})
	b.Run("protoactor", func(b *testing.B) {
		s, props := newSystem(b), actor.PropsFromFunc(ignore)
		m := measure(b)
		m.start()
		for range b.N {
			waitFor(b, s.Root.StopFuture(s.Root.Spawn(props)))
		}
		m.stop()
		m.report(1)
	})
}

// BenchmarkSpawnMany is a thousand starts, and then the wait for all of them.
func BenchmarkSpawnMany(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		m := measure(b)
		m.start()
		for range b.N {
			var wg sync.WaitGroup
			for range many {
				wg.Go(func() {})
			}
			wg.Wait()
		}
		m.stop()
		m.report(many)
	})
	b.Run("rnix", func(b *testing.B) {
		k := newKernel(b)
		pids := make([]types.PID, many)
		m := measure(b)
		m.start()
		for range b.N {
			for i := range pids {
				pids[i] = spawn(b, k, 0, nothing)
			}
			for _, pid := range pids {
				if _, err := k.Wait(pid); err != nil {
					b.Fatal(err)
				}
			}
		}
		m.stop()
		m.report(many)
	})
	b.Run("protoactor", func(b *testing.B) {
		s, props := newSystem(b), actor.PropsFromFunc(ignore)
		ends := make([]*actor.Future, many)
		m := measure(b)
		m.start()
		for range b.N {
			for i := range ends {
				ends[i] = s.Root.PoisonFuture(s.Root.Spawn(props))
			}
			for _, f := range ends {
				waitFor(b, f)
			}
		}
		m.stop()
		m.report(many)
	})
}

// fanOut is how many children each of a tree has.
const fanOut = 10

// BenchmarkKillTree is the end of a tree of a thousand: from the order to the end of the last of them.
func BenchmarkKillTree(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		m := measure(b)
		for range b.N {
			root, kill := context.WithCancel(context.Background())
			tree := []context.Context{root}
			var ended sync.WaitGroup
			for i := range many {
				if i > 0 {
					c, cancel := context.WithCancel(tree[(i-1)/fanOut])
					defer cancel()
					tree = append(tree, c)
				}
				ended.Go(func() { <-tree[i].Done() })
			}
			m.start()
			kill()
			ended.Wait()
			m.stop()
		}
		m.report(many)
	})
	b.Run("rnix", func(b *testing.B) {
		k := newKernel(b)
		m := measure(b)
		for range b.N {
			procs := make([]*kernel.Process, many)
			for i := range procs {
				parent := types.PID(0)
				if i > 0 {
					parent = procs[(i-1)/fanOut].PID
				}
				procs[i], _ = k.Process(spawn(b, k, parent, idle))
			}
			m.start()
			if _, err := k.SignalTree(procs[0].PID, types.SIGKILL); err != nil {
				b.Fatal(err)
			}
			for _, p := range procs {
				<-p.Left()
			}
			m.stop()
			for _, p := range procs {
				<-p.Gone()
			}
		}
		m.report(many)
	})
	b.Run("protoactor", func(b *testing.B) {
		s := newSystem(b)
		m := measure(b)
		for range b.N {
			var begun sync.WaitGroup
			begun.Add(many)
			root := s.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &branch{at: 0, begun: &begun} }))
			begun.Wait()
			m.start()
			waitFor(b, s.Root.StopFuture(root)) // it ends when its children have
			m.stop()
		}
		m.report(many)
	})
}

// branch is an actor of a tree, which starts those below it.
type branch struct {
	at    int
	begun *sync.WaitGroup
}

// Receive implements actor.Actor.
func (t *branch) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); !ok {
		return
	}
	for i := t.at*fanOut + 1; i <= t.at*fanOut+fanOut && i < many; i++ {
		c.Spawn(actor.PropsFromProducer(func() actor.Actor { return &branch{at: i, begun: t.begun} }))
	}
	t.begun.Done()
}
