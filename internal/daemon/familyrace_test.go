package daemon_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/types"
)

// levels starts a family of six in three levels, of which each thinks until the gates are opened, and returns its head.
func levels(t *testing.T) (c *kindred, top *relative) {
	c = newKindred(t)
	below := func(name string) *relative {
		return &relative{name: name, turns: 1, front: []*relative{{name: name + "x1"}}}
	}
	top = c.grow(&relative{name: "p1", back: []*relative{below("p1x1"), below("p1x2")}, front: []*relative{{name: "p1x3"}}})
	c.shut("p1x1x1", "p1x2x1", "p1x3")
	c.start(top)
	c.runs("p1", "p1x1", "p1x1x1", "p1x2", "p1x2x1", "p1x3")
	return c, top
}

// at does several commands at once, each after a delay of its own, and returns what each has said.
func (c *kindred) at(rng *rand.Rand, most time.Duration, commands ...[]string) (codes []int, texts []string) {
	codes, texts = make([]int, len(commands)), make([]string, len(commands))
	var wg sync.WaitGroup
	for i, args := range commands {
		pause := time.Duration(rng.Int64N(int64(most)))
		wg.Go(func() {
			<-time.After(pause)
			codes[i], texts[i] = c.rnix(args...)
		})
	}
	wg.Wait()
	return codes, texts
}

// Nobody of a family that is killed as a tree lives on because another command was at the family at that moment: who is resumed then is killed or has
// never been resumed.
func TestKilledFamilyHasEndedWhateverElseIsDoneToIt(t *testing.T) {
	rounds := soak.Number(t, "RNIX_FAMILY_RACES", "races for each beginning", 1, 40)
	seed := uint64(soak.Number(t, "RNIX_FAMILY_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	for from, begin := range map[string]func(c *kindred){
		"it works":        func(*kindred) {},
		"it is paused":    func(c *kindred) { arranged(c.t, c.does("pause", "--subtree", "p1")) },
		"it is suspended": func(c *kindred) { arranged(c.t, c.does("pause", "--subtree", "p1")); c.crash() },
		"some of it is on disk": func(c *kindred) {
			arranged(c.t, append(c.does("pause", "p1x1x1"), c.does("pause", "p1x3")...))
			c.crash()
		},
	} {
		t.Run(from, func(t *testing.T) {
			for n := range rounds {
				rng := rand.New(rand.NewPCG(seed, uint64(n)))
				c, top := levels(t)
				begin(c)
				kill := []string{"kill", "-9", "--subtree", "p1"}
				if n%2 == 1 {
					kill = []string{"kill", "--subtree", "p1"}
				}
				codes, texts := c.at(rng, 30*time.Millisecond, kill, []string{"resume", "--subtree", "p1"}, []string{"resume", "--subtree", "p1x1"}, []string{"pause", "--subtree", "p1x2"}, []string{"pause", "p1x3"})
				if codes[0] != types.ExitOK {
					t.Errorf("seed %d, race %d: %s", seed, n, texts[0])
				}
				for _, left := range c.left(top) {
					t.Errorf("seed %d, race %d: %s; %d %q", seed, n, left, codes, texts)
				}
				c.open()
			}
		})
	}
}

// left waits until all of a family have ended, or some do not, and returns these.
func (c *kindred) left(top *relative) (left []string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		f := c.family()
		left = nil
		for _, m := range top.all() {
			if p := f[m.name]; p.State != "dead" {
				left = append(left, fmt.Sprintf("%s (PID %d) is %s (%s)", m.name, p.PID, p.State, p.Wait))
			}
		}
		if len(left) == 0 || time.Since(began) > unmoved {
			return left
		}
	}
}

// A daemon that is killed while it resumes a family leaves each of it as it was or resumed, and the same command resumes the rest: all of it comes to its
// end, with all that it does done once.
func TestFamilyIsResumedThoughTheDaemonIsKilledMeanwhile(t *testing.T) {
	rounds := soak.Number(t, "RNIX_FAMILY_KILLS", "ends of the daemon", 2, 40)
	seed := uint64(soak.Number(t, "RNIX_FAMILY_SEED", "the seed", 1+int(rand.Int32()), 1+int(rand.Int32())))
	for n := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		c, top := levels(t)
		arranged(t, c.does("pause", "--subtree", "p1"))
		c.crash()
		said := make(chan error, 1)
		go func(client *ipc.Client) { // ends with the daemon; the program would start another one
			_, err := ipc.Call(context.Background(), client, ipc.Resume, ipc.ResumeRequest{Target: "p1", Tree: true, Env: c.s.Env})
			said <- err
		}(c.s.Client)
		<-time.After(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
		c.crash()
		<-said
		for name, p := range c.family() {
			if p.State != "running" && p.State != "suspended" {
				t.Errorf("seed %d, kill %d: %s is %s (%v)", seed, n, name, p.State, p.Exit)
			}
		}
		for _, wrong := range c.does("resume", "--subtree", "p1") {
			t.Errorf("seed %d, kill %d: %s", seed, n, wrong)
		}
		if i := slices.IndexFunc(top.all(), func(m *relative) bool { return standsPaused(c.family()[m.name]) }); i >= 0 {
			t.Errorf("seed %d, kill %d: %s is paused", seed, n, top.all()[i].name)
		}
		for _, wrong := range c.whole(top) {
			t.Errorf("seed %d, kill %d: %s", seed, n, wrong)
		}
	}
}
