package controlplane_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/agent"
	"rnix/internal/durable/faultfs"
	"rnix/runtime/activity"
	"rnix/runtime/controlplane"
	"rnix/runtime/heartbeat"
	"rnix/runtime/internal/wiretest"
	"rnix/runtime/journal"
)

var fightSeed = flag.Uint64("fight.seed", 0, "fight with this seed alone")

// moment is when a daemon believed that the session was its own, and under which token.
type moment struct {
	At    time.Time
	Token uint64
}

// fighter is one daemon: it takes the session when it can, works under it, and writes down when it believed to own it.
type fighter struct {
	name    string
	net     *wiretest.Network
	rand    *rand.Rand
	journal *journal.Journal
	poster  *activity.Poster
	token   atomic.Uint64
	sent    int
}

func (f *fighter) config() heartbeat.Config {
	return heartbeat.Config{SessionID: "s1", WorkerID: f.name, BaseURL: "http://platform", AuthToken: secret, Interval: 500 * time.Millisecond,
		RequestTimeout: time.Second, HTTPClient: &http.Client{Transport: f.net}, Logger: quiet}
}

func newFighter(t *testing.T, name string, n *wiretest.Network, seed uint64) *fighter {
	j, err := journal.Open(journal.Options{Session: "s1", Dir: "/data/j", FS: faultfs.New("/data")})
	if err != nil {
		t.Fatal(err)
	}
	f := &fighter{name: name, net: n, rand: rand.New(rand.NewPCG(seed, 2)), journal: j}
	f.poster, err = activity.New(activity.Config{SessionID: "s1", WorkerID: name, BaseURL: "http://platform", AuthToken: secret,
		Journal: j, Token: f.token.Load, HTTPClient: &http.Client{Transport: n}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	f.poster.Start(ctx)
	return f
}

func (f *fighter) some(d time.Duration) time.Duration {
	return time.Duration(f.rand.Float64() * float64(d))
}

// fight takes and holds the session until ctx ends.
func (f *fighter) fight(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		f.turn(ctx, t, f.some(8*time.Second), f.rand.IntN(2) == 0)
		time.Sleep(f.some(time.Second))
	}
}

// turn takes the session, works for a while or until it is lost, and then gives it back, or just lets go of it.
func (f *fighter) turn(ctx context.Context, t *testing.T, long time.Duration, release bool) {
	cfg := f.config()
	lease, err := heartbeat.Claim(ctx, cfg)
	if err != nil {
		return
	}
	cfg.FencingToken = lease.FencingToken
	p, err := heartbeat.New(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	if err := p.Start(ctx); err != nil {
		t.Error(err)
		return
	}
	f.token.Store(p.Token())
	end := time.After(long)
	for working := true; working; {
		select {
		case <-p.LostOwnership():
			working = false
		case <-end:
			working = false
		case <-ctx.Done():
			working = false
		case <-time.After(f.some(300 * time.Millisecond)):
		}
		if p.Check() != nil {
			continue
		}
		f.sent++
		if _, err := f.journal.Append(context.Background(), journal.Draft{Kind: "moment", Data: moment{time.Now(), p.Token()}}); err != nil {
			t.Error(err)
		}
		f.poster.Send(context.Background(), agent.AssistantTextEvent{Text: fmt.Sprint(f.name, " ", f.sent)})
	}
	p.Stop()
	if release {
		_ = p.Release(ctx) // the network may lose it
	}
}

// swap is a control plane that can crash.
type swap struct {
	mu sync.RWMutex
	s  *controlplane.Server // +checklocks:mu
}

func (x *swap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.RLock()
	s := x.s
	x.mu.RUnlock()
	s.ServeHTTP(w, r)
}

// TestTwoDaemonsFightAndTheSessionHasOneOwnerAtATime lets two daemons fight over a session for a minute, while
// requests are lost, late, doubled and refused, networks are cut and the control plane crashes.
func TestTwoDaemonsFightAndTheSessionHasOneOwnerAtATime(t *testing.T) {
	seeds := []uint64{*fightSeed}
	if *fightSeed == 0 {
		seeds = nil
		for i := range uint64(24 / faultfs.Share(6)) {
			seeds = append(seeds, i+1)
		}
	}
	owners, stalls := 0, 0
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, s := fight(t, seed)
				owners, stalls = owners+o, stalls+s
			})
		})
	}
	if !t.Failed() && *fightSeed == 0 && (owners < 4*len(seeds) || stalls == 0) {
		t.Errorf("%d owners and %d pending activities in %d fights: that was no fight", owners, stalls, len(seeds))
	}
}

func fight(t *testing.T, seed uint64) (owners, stalled int) {
	disk := faultfs.New("/data")
	begin := func() *controlplane.Server {
		s, err := controlplane.Open(controlplane.Options{Dir: "/data/cp", FS: disk, Logger: quiet, TTL: 3 * time.Second})
		if err == nil {
			err = s.AddToken(secret)
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	server := &swap{s: begin()}
	faults := wiretest.Faults{Lost: 0.1, Unheard: 0.1, Doubled: 0.1, Broken: 0.1, LateTwice: 0.1, Delay: 300 * time.Millisecond}
	var all []*fighter
	for i, name := range []string{"a", "b"} {
		all = append(all, newFighter(t, name, wiretest.NewNetwork(server, seed*2+uint64(i), faults), seed*2+uint64(i)))
	}
	minute, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for _, f := range all {
		running.Go(func() { f.fight(minute, t) })
	}
	running.Go(func() { // cuts networks and crashes the server
		r := rand.New(rand.NewPCG(seed, 3))
		for minute.Err() == nil {
			time.Sleep(time.Duration(r.Float64() * float64(4*time.Second)))
			if r.IntN(4) == 0 {
				server.mu.Lock()
				disk.Crash(r.Uint64())
				_ = server.s.Close()
				server.s = begin()
				server.mu.Unlock()
				continue
			}
			f := all[r.IntN(2)]
			f.net.Cut(true)
			time.Sleep(time.Duration(r.Float64() * float64(6*time.Second)))
			f.net.Cut(false)
		}
	})
	running.Wait()
	for _, f := range all {
		f.net.Heal()
		stored := told(t, server, f.name)
		if missing := f.sent - len(stored); missing > f.poster.Pending() {
			t.Errorf("%s has sent %d, %d are stored and only %d pending", f.name, f.sent, len(stored), f.poster.Pending())
		}
		stalled += f.poster.Pending()
	}
	for _, f := range all { // in peace, each tells what it has still to tell
		time.Sleep(10 * time.Second)
		f.turn(ctx, t, 30*time.Second, false)
		time.Sleep(time.Second) // nobody else has claimed: its token is still the newest
		if stored := told(t, server, f.name); len(stored) != f.sent || f.poster.Pending() != 0 || f.poster.Refused() != 0 {
			t.Errorf("%s has sent %d, %d are stored, %d pending", f.name, f.sent, len(stored), f.poster.Pending())
		}
		f.poster.Stop()
		f.net.Wait()
	}
	owners = tenures(t, all)
	server.mu.Lock()
	_ = server.s.Close()
	server.mu.Unlock()
	for _, f := range all {
		if err := f.journal.Close(); err != nil {
			t.Error(err)
		}
	}
	return owners, stalled
}

// told returns what the control plane has of a daemon: each once and in order, under tokens that never go back.
func told(t *testing.T, server http.Handler, name string) (texts []string) {
	last, lastToken := 0, uint64(0)
	for after := uint64(0); ; {
		code, page := ask(server, "GET", fmt.Sprint("/s1/activity?limit=1000&after=", after), 0, "")
		events, _ := page["events"].([]any)
		if code != 200 {
			if code == 404 {
				return nil
			}
			t.Fatalf("GET: %d %v", code, page)
		}
		if len(events) == 0 {
			return texts
		}
		after = uint64(page["next"].(float64))
		for _, e := range events {
			data := e.(map[string]any)["data"].(map[string]any)
			token := uint64(data["token"].(float64))
			if token < lastToken {
				t.Errorf("an activity under token %d is stored after one under %d", token, lastToken)
			}
			lastToken = token
			text := data["body"].(map[string]any)["content"].(string)
			if who, n, _ := strings.Cut(text, " "); who == name {
				var i int
				if _, err := fmt.Sscan(n, &i); err != nil || i != last+1 {
					t.Errorf("%q is stored after %d", text, last)
				}
				last = i
				texts = append(texts, text)
			}
		}
	}
}

// tenures reads from the journals of all daemons when each believed to be the owner, and returns how many
// owners there were. No token is that of two, and their times do not overlap.
func tenures(t *testing.T, all []*fighter) (owners int) {
	type claim struct {
		moment
		who string
	}
	var claims []claim
	for _, f := range all {
		for after := uint64(0); ; {
			events, err := f.journal.Read(after, 1000, "moment")
			if err != nil {
				t.Fatal(err)
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				var m moment
				if err := errors.Join(json.Unmarshal(e.Data, &m)); err != nil {
					t.Fatal(err)
				}
				if e.Kind == "moment" {
					claims = append(claims, claim{m, f.name})
				}
				after = e.Seq
			}
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Token, b.Token)) })
	who := map[uint64]string{}
	for i, c := range claims {
		if c.Token == 0 || who[c.Token] != "" && who[c.Token] != c.who {
			t.Errorf("token %d is that of %s and of %s", c.Token, who[c.Token], c.who)
		}
		who[c.Token] = c.who
		if i > 0 && c.Token < claims[i-1].Token {
			t.Errorf("at %v %s believed in token %d, when %s had %d since %v", c.At, c.who, c.Token, claims[i-1].who, claims[i-1].Token, claims[i-1].At)
		}
	}
	return len(who)
}
