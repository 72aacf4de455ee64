package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rnix/internal/daemon/storm"
	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// shortDir makes a directory: t.TempDir is too long for a socket.
func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rnix")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// inProcess starts a daemon within the test, with its socket, and so many processes that do nothing.
func inProcess(t testing.TB, procs int) (*Daemon, *ipc.Client, []*kernel.Process) {
	t.Helper()
	return inProcessIn(t, shortDir(t), procs)
}

// inProcessIn is inProcess with a home; its data are in data below it.
func inProcessIn(t testing.TB, dir string, procs int) (*Daemon, *ipc.Client, []*kernel.Process) {
	t.Helper()
	config := filepath.Join(dir, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("version: \"1\"\ndurability: none\nlimits:\n  total: %d\n", procs+100)
	if err := os.WriteFile(filepath.Join(config, "config.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": dir, "RNIX_DATA_DIR": filepath.Join(dir, "data"), "XDG_RUNTIME_DIR": dir, "XDG_CONFIG_HOME": filepath.Join(dir, ".config")}
	d := newDaemon(Options{Version: "test", Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	l, _, undo, err := d.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	close(d.looked)
	d.server = ipc.NewServer(ipc.ServerOptions{Logger: d.log})
	d.handle(d.server)
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(l) }() // ends with the Shutdown below
	c := ipc.NewClient(d.places.Socket)
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		if err := d.kernel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := d.server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		<-served
		if err := undo.run(); err != nil {
			t.Error(err)
		}
	})
	out, err := storm.Spawn(ctx, d.kernel, procs, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	return d, c, out
}

// tableOf folds frames.
type tableOf struct {
	rows   map[types.UUID]ipc.Proc
	last   ipc.ProcTable
	frames int
	missed int
}

func (w *tableOf) fold(f *ipc.Frame[ipc.ProcTable]) error {
	if f.Missed != nil {
		w.missed++
		if f.Missed.From != w.last.Seq+1 || f.Missed.To < f.Missed.From {
			return fmt.Errorf("after %d it is told of %+v", w.last.Seq, *f.Missed)
		}
		return nil
	}
	p := &f.Data
	if w.frames++; p.Whole {
		w.rows = map[types.UUID]ipc.Proc{}
	}
	if w.rows == nil || p.Seq < w.last.Seq {
		return fmt.Errorf("a frame of %d comes after one of %d", p.Seq, w.last.Seq)
	}
	for _, r := range p.Procs {
		w.rows[r.UUID] = r
	}
	for _, id := range p.Gone {
		delete(w.rows, id)
	}
	w.last = *p
	return nil
}

// equals compares what was folded with what the daemon lists.
func (w *tableOf) equals(l *ipc.ListResponse) error {
	if len(w.rows) != len(l.Procs) || w.last.Totals != l.Totals {
		return fmt.Errorf("%d rows, %+v; %d are listed, %+v", len(w.rows), w.last.Totals, len(l.Procs), l.Totals)
	}
	for _, p := range l.Procs {
		q := w.rows[p.UUID]
		p.ElapsedMs, q.ElapsedMs = 0, 0
		a, _ := json.Marshal(&p)
		b, _ := json.Marshal(&q)
		if string(a) != string(b) {
			return fmt.Errorf("%s is listed as %s", b, a)
		}
	}
	return nil
}

// crowd is the subscribers of the load test.
type crowd struct {
	t       *testing.T
	d       *Daemon
	ctx     context.Context
	wg      sync.WaitGroup
	last    atomic.Uint64 // of the events of the load; 0 = they still come
	rest    chan struct{} // closed when the load is over: who stood still goes on
	events  atomic.Int64  // that were read
	lost    atomic.Int64  // that readers were told they have missed
	frames  atomic.Int64  // of tables
	gaps    atomic.Int64  // of tables
	visits  atomic.Int64
	correct atomic.Int64 // who were right at the end
}

func (c *crowd) client() *ipc.Client { return ipc.NewClient(c.d.places.Socket) }

// readEvents reads the log and accounts for each event: it was read, or it was missed and that was told. slow is called after
// each read.
func (c *crowd) readEvents(slow func(n int)) {
	cl := c.client()
	defer cl.Close()
	read, missed, err := storm.ReadEvents(c.ctx, cl, slow)
	c.events.Add(read)
	c.lost.Add(missed)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.correct.Add(1)
}

// readTable folds frames until the table is that of the end.
func (c *crowd) readTable(req ipc.WatchRequest, slow func(n int)) {
	cl := c.client()
	defer cl.Close()
	feed, err := ipc.Open(c.ctx, cl, ipc.WatchProcs, req)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer feed.Close()
	var w tableOf
	for n := 1; ; n++ {
		f, err := feed.Next()
		if err == nil {
			err = w.fold(&f)
		}
		if err != nil {
			c.t.Errorf("a table: %v", err)
			return
		}
		c.frames.Add(1)
		if last := c.last.Load(); last > 0 && w.last.Seq >= last && f.Missed == nil {
			l, err := ipc.Call(c.ctx, cl, ipc.ListProcs, ipc.ListRequest{All: req.All, Limit: req.Limit})
			if err == nil {
				err = w.equals(&l)
			}
			if err != nil {
				c.t.Errorf("%+v: %v", req, err)
			} else {
				c.correct.Add(1)
			}
			c.gaps.Add(int64(w.missed))
			return
		}
		slow(n)
	}
}

// visit opens a stream, reads some of it, and leaves, again and again.
func (c *crowd) visit() {
	cl := c.client()
	defer cl.Close()
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.wg.Go(func() { <-c.rest; cancel() }) // then there is nothing more to read
	for c.last.Load() == 0 {
		feed, err := ipc.Open(ctx, cl, ipc.WatchProcs, ipc.WatchRequest{EveryMs: 33})
		for n := 0; err == nil && n < 5; n++ {
			_, err = feed.Next()
		}
		if feed != nil {
			_ = feed.Close()
		}
		if err != nil && c.last.Load() == 0 {
			c.t.Error(err)
			return
		}
		c.visits.Add(1)
	}
	c.correct.Add(1)
}

// Five thousand events a second to fifty who look, some of whom are slow, stand still, or come and go: no agent waits for them, each is
// told exactly what it missed, and memory stays as it is.
func TestFiftyWatchersOfFiveThousandEventsASecondHoldNobodyUp(t *testing.T) {
	soak.Turn(t)
	const procs, rate, watchers = 200, 5000, 50
	span := time.Duration(soak.Number(t, "RNIX_LOAD_SECONDS", "seconds of load", 2, 30)) * time.Second
	d, _, all := inProcess(t, procs)
	alone := storm.Blow(t.Context(), d.kernel, d.events, all, rate, span/8, false)
	ctx, cancel := context.WithTimeout(t.Context(), span+2*time.Minute)
	defer cancel()
	c := &crowd{t: t, d: d, ctx: ctx, rest: make(chan struct{})}
	quick := func(int) {}
	slow := func(n int) {
		if n%50 == 0 && c.last.Load() == 0 {
			<-time.After(20 * time.Millisecond)
		}
	}
	drowsy := func(int) {
		if c.last.Load() == 0 {
			<-time.After(400 * time.Millisecond)
		}
	}
	stands := func(n int) {
		if n == 10 {
			<-c.rest
		}
	}
	for i := range watchers {
		c.wg.Go(func() { // each ends when it has seen the end of the load, or with ctx
			switch {
			case i < 14:
				c.readEvents(quick)
			case i < 20:
				c.readEvents(slow)
			case i < 25:
				c.readEvents(stands)
			case i < 39:
				c.readTable(ipc.WatchRequest{All: i%2 == 0}, quick)
			case i < 44:
				c.readTable(ipc.WatchRequest{EveryMs: 33}, drowsy)
			case i < 47:
				c.readTable(ipc.WatchRequest{EveryMs: 33}, stands)
			default:
				c.visit()
			}
		})
	}
	before := cpu()
	r := storm.Blow(t.Context(), d.kernel, d.events, all, rate, span, true)
	used := cpu() - before
	c.last.Store(storm.End(d.events))
	close(c.rest)
	c.wg.Wait()
	if n := c.correct.Load(); n != watchers {
		t.Errorf("%d of %d were right", n, watchers)
	}
	first, last := r.Heaps[len(r.Heaps)/4], r.Heaps[len(r.Heaps)-1]
	t.Logf("%d events in %v (%.0f/s), %d changes of rows; %d watchers", r.Events, r.Took.Round(time.Millisecond), float64(r.Events)/r.Took.Seconds(), r.Changes, watchers)
	t.Logf("append: alone p50 %v p99 %v max %v; watched p50 %v p99 %v max %v", alone.P50, alone.P99, alone.Max, r.P50, r.P99, r.Max)
	t.Logf("read: %d events, %d told as missed; %d frames of tables, %d gaps told; %d visits", c.events.Load(), c.lost.Load(), c.frames.Load(), c.gaps.Load(), c.visits.Load())
	t.Logf("heap %.1f MiB after a quarter, %.1f MiB at the end; CPU %.2f cores, clients included", mib(first), mib(last), used.Seconds()/r.Took.Seconds())
	if p := r.P99; p > 20*time.Millisecond {
		t.Errorf("an agent waits %v for its event, one time in a hundred", p)
	}
	if span > 30*time.Second && last > first+24<<20 { // before, not all of them are there yet
		t.Errorf("the heap has grown from %.1f to %.1f MiB", mib(first), mib(last))
	}
}

func mib(n uint64) float64 { return float64(n) / (1 << 20) }

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// However many processes there are, the first frame is there at once, and a change costs what it costs among few.
func TestChangeAmongManyCostsNoListing(t *testing.T) {
	n := soak.Number(t, "RNIX_LOAD_PROCESSES", "processes", 300, 10_000)
	d, c, all := inProcess(t, n)
	at := time.Now()
	feed, err := ipc.Open(t.Context(), c, ipc.WatchProcs, ipc.WatchRequest{EveryMs: 33})
	if err != nil {
		t.Fatal(err)
	}
	defer feed.Close()
	f, err := feed.Next()
	first := time.Since(at)
	if err != nil || len(f.Data.Procs) != n || !f.Data.Whole || f.Data.Totals.Running != n {
		t.Fatalf("%d rows, %+v, %v", len(f.Data.Procs), f.Data.Totals, err)
	}
	size := len(f.Raw)
	at = time.Now()
	if _, err := ipc.Call(t.Context(), c, ipc.ListProcs, ipc.ListRequest{}); err != nil {
		t.Fatal(err)
	}
	listing := time.Since(at)
	const changes = 100
	at = time.Now()
	for i := range changes {
		storm.Progress(d.kernel, all[i*n/changes], kernel.Progress{Step: i + 1})
	}
	got := 0
	for got < changes {
		f, err := feed.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.Data.Whole || len(f.Raw) > 2*size*len(f.Data.Procs)/n+500 {
			t.Fatalf("%d bytes for %d rows, all: %t", len(f.Raw), len(f.Data.Procs), f.Data.Whole)
		}
		got += len(f.Data.Procs)
	}
	change := time.Since(at) / changes
	t.Logf("first frame of %d rows, %.1f MiB: %v, decoded. All listed: %v. A change, until it is here: %v", n, float64(size)/(1<<20), first, listing, change)
	if n > 1000 && first > 3*time.Second {
		t.Errorf("the first frame took %v", first)
	}
	if n > 1000 && change > listing/10 {
		t.Errorf("a change takes %v, and a listing of everything %v", change, listing)
	}
}
