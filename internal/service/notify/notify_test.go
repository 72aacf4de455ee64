package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/event"
	"rnix/internal/proc"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// told keeps what would be run, and fails as often as it is to.
type told struct {
	mu    sync.Mutex
	fails int
	at    []time.Time
	text  []string
}

func (w *told) Start(_ context.Context, spec proc.Spec) (*proc.Child, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at, w.text = append(w.at, time.Now()), append(w.text, string(spec.Input))
	if w.fails > 0 {
		w.fails--
		return nil, errors.New("not now")
	}
	return nil, context.Canceled // brought; the service is stopped before it asks again
}

// all returns what was told so far.
func (w *told) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.text)
}

type cards map[types.UUID]step.ProcInfo

func (c cards) Get(id types.UUID) (step.ProcInfo, bool) { i, ok := c[id]; return i, ok }

func asked(n string) event.Event {
	return event.Event{Kind: event.Asked, PID: 3, UUID: types.UUID{3}, Args: n, Text: "shell rm x" + n}
}

// What comes while a notice is young is told together, when its time is over.
func TestWhatComesTogetherIsToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := event.New(0)
		w := &told{}
		conf := &config.Notify{On: config.Value[[]string]{V: config.Notices}, Command: config.Value[[]string]{V: []string{"told"}}, Every: config.Value[agent.Duration]{V: agent.Duration(10 * time.Second)}}
		ctx, stop := context.WithCancel(t.Context())
		d := &Service{Events: log, Index: cards{{3}: {ProcStatus: types.ProcStatus{Name: "night"}}, {4}: {ProcStatus: types.ProcStatus{ParentUUID: types.UUID{3}}}}, Config: func() *config.Notify { return conf },
			Start: w, Secrets: new(redact.Set), Log: slog.New(slog.DiscardHandler)}
		done := make(chan struct{})
		go func() { defer close(done); d.Run(ctx) }()
		synctest.Wait()
		log.Append(asked("1"))
		synctest.Wait()
		for _, n := range []string{"2", "3"} {
			log.Append(asked(n))
		}
		log.Append(event.Event{Kind: event.Exited, PID: 4, UUID: types.UUID{4}, Exit: &types.ExitStatus{}})                                   // whoever has started it hears of it
		log.Append(event.Event{Kind: event.Exited, PID: 3, UUID: types.UUID{3}})                                                              // with the daemon
		log.Append(event.Event{Kind: event.Exited, PID: 3, UUID: types.UUID{3}, Exit: &types.ExitStatus{Code: types.ExitCancelled}})          // a person has
		log.Append(event.Event{Kind: event.Exited, PID: 3, UUID: types.UUID{3}, Exit: &types.ExitStatus{Code: 1, Reason: "it was too much"}}) // this counts
		synctest.Wait()
		if all := w.all(); len(all) != 1 || !strings.Contains(all[0], `"title":"Rnix: night asks","text":"night (PID 3) asks: shell rm x1 (rnix allow 1, or rnix deny 1)"`) {
			t.Fatalf("%q", all)
		}
		<-time.After(time.Hour) // past the attempts of the first one, too
		synctest.Wait()
		all := w.all()
		if last := all[len(all)-1]; !strings.Contains(last, `"title":"Rnix: 2 asked, 1 failed"`) || !strings.Contains(last, "it was too much") || strings.Contains(last, `"pid":4`) {
			t.Errorf("%q", last)
		}
		stop()
		<-done
		log.Close()
	})
}

func TestWhatFailsIsTriedAgainAndDelaysNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &told{fails: 1 << 20}
		conf := &config.Notify{On: config.Value[[]string]{V: config.Notices}, Command: config.Value[[]string]{V: []string{"told"}}, Every: config.Value[agent.Duration]{V: agent.Duration(time.Second)}}
		d := &Service{Start: w, Log: slog.New(slog.DiscardHandler), Secrets: new(redact.Set)}
		n := NoticeOf([]Item{{Kind: config.NoticeDone}})
		began := time.Now()
		d.bring(t.Context(), conf, &n)
		if len(w.at) != 4 || time.Since(began) != 36*time.Second {
			t.Errorf("%d attempts in %v", len(w.at), time.Since(began))
		}
	})
}

func TestANoticeIsShort(t *testing.T) {
	var items []Item
	for i := range 50 {
		items = append(items, Item{Kind: config.Notices[3-i%4], PID: types.PID(i), Text: strings.Repeat("x", 150)})
	}
	n := NoticeOf(items)
	if len(n.Items) != maxItems || n.More != 40 || n.Items[0].Kind != config.NoticeAsk || len(n.Text) > 4000 || n.Title != "Rnix: 12 asked, 12 failed, 13 suspended, 13 done" {
		t.Errorf("%+v", n)
	}
	it, ok := itemOf(&event.Event{Kind: event.Asked, Args: "1", Text: "shell a\n\x1b[2Jb" + strings.Repeat("y", 1000)}, new(step.ProcInfo), new(redact.Set))
	if !ok || strings.Contains(it.Text, "\n") || len(it.Text) > 300 {
		t.Errorf("%q", it.Text)
	}
}

// What an agent writes neither acts on a screen, nor keeps a program from being started, nor shows a part of a secret.
func TestANoticeHoldsNothingThatActs(t *testing.T) {
	secrets := new(redact.Set)
	secret := "sk-0123456789abcdefghij"
	secrets.Add(redact.Secret{Name: "KEY", Value: secret})
	long := strings.Repeat("x", 120)
	it, ok := itemOf(&event.Event{Kind: event.Asked, Args: "1", Text: "shell a\x00\x1b]0;owned\x07\x1b[2Jb\u202ec\xff " + long + secret + long + long},
		&step.ProcInfo{ProcStatus: types.ProcStatus{Name: "a\x1b[2J\x00b"}}, secrets)
	if !ok || !strings.HasPrefix(it.Text, "shell abc\ufffd xxx") || strings.Contains(it.Text, "sk-0") || it.Name != "ab" {
		t.Errorf("%q %q", it.Name, it.Text)
	}
}

// The text of a notice of the desktop is markup.
func TestTheDesktopShowsTextAsItIs(t *testing.T) {
	w := &argvs{}
	d := &Service{Start: w, Secrets: new(redact.Set)}
	n := NoticeOf([]Item{{Kind: config.NoticeAsk, Text: `shell <a href="http://evil.test">a</a> && b`}})
	_ = d.ways(&config.Notify{Desktop: config.Value[bool]{V: true}})[0].tell(t.Context(), &n)
	if text := w.last[len(w.last)-1]; strings.Contains(text, "<a") || !strings.Contains(text, "&lt;a") || !strings.Contains(text, "&amp;&amp; b") {
		t.Errorf("%q", text)
	}
}

// argvs keeps the arguments of what would be run.
type argvs struct{ last []string }

func (w *argvs) Start(_ context.Context, spec proc.Spec) (*proc.Child, error) {
	w.last = spec.Args
	return nil, errors.New("not now")
}
