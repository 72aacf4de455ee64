package mail

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// post is a kernel in which nothing runs but the agent that asks, histories on disk, and who asks.
type post struct {
	Kernel  // what a test does not need is nil
	caller  types.PID
	inside  bool
	answers []types.ErrCode // of the tries to write into a history, one after the other; "" = it is written
	tries   int
	got     []step.Mail
	given   []vfs.Attachment
	state   recovery.State
	parents types.UUID
}

func (p *post) ByUUID(types.UUID) (*kernel.Process, bool) { return nil, false }

func (p *post) Info(pid types.PID) (kernel.Info, error) {
	return kernel.Info{ProcStatus: types.ProcStatus{PID: pid, UUID: types.UUID{9}, Name: "agent"}}, nil
}

func (p *post) Put(_ context.Context, _ types.UUID, m step.Mail, given []vfs.Attachment) (uint64, error) {
	p.tries++
	if n := p.tries - 1; n < len(p.answers) && p.answers[n] != "" {
		return 0, types.Errorf(p.answers[n], "Send", "", "not now")
	}
	p.got, p.given = append(p.got, m), append(p.given, given...)
	return uint64(len(p.got)), nil
}

func (p *post) Read(context.Context, types.UUID) (*recovery.State, error) { return &p.state, nil }

func (p *post) Settled(context.Context) error { return nil }

func (p *post) AgentOf(*ipc.Peer) (types.PID, bool) { return p.caller, p.inside }

func (p *post) Resolve(string) (service.Target, error) {
	return service.Target{UUID: types.UUID{1}, PID: 3, Info: &step.ProcInfo{ProcStatus: types.ProcStatus{UUID: types.UUID{1}, PID: 3, Name: "sleeper", ParentUUID: p.parents}, Suspended: true}}, nil
}

func (p *post) Empty() bool { return false }

func (p *post) Bytes(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "***")) }

func (p *post) String(text string) string { return string(p.Bytes([]byte(text))) }

func office(p *post) *Service { return &Service{Kernel: p, Stored: p, Finder: p, Secrets: p} }

func TestMessageIsTriedAgainWhileAHistoryIsBeingWritten(t *testing.T) {
	for name, c := range map[string]struct {
		answers []types.ErrCode
		room    bool
		want    types.ErrCode
		tries   int
	}{
		"at once":                {nil, false, "", 1},
		"somebody writes":        {[]types.ErrCode{types.ErrConflict, types.ErrConflict, ""}, false, "", 3},
		"full":                   {[]types.ErrCode{types.ErrExhausted}, false, types.ErrExhausted, 1},
		"full, and it may wait":  {[]types.ErrCode{types.ErrExhausted, types.ErrExhausted, ""}, true, "", 3},
		"it has ended":           {[]types.ErrCode{types.ErrConflict, types.ErrBrokenPipe}, true, types.ErrBrokenPipe, 2},
		"somebody writes always": {slow(1000), false, types.ErrConflict, int(carryTime/carryAgain) + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &post{answers: c.answers}
				_, onDisk, err := office(p).Carry(t.Context(), types.UUID{1}, step.Mail{Text: "hello"}, c.room)
				if types.CodeOf(err) != c.want || !onDisk || p.tries > c.tries || p.tries < c.tries-1 {
					t.Errorf("on disk %v, %v, after %d tries", onDisk, err, p.tries)
				}
				if delivered := len(p.got); (delivered == 1) != (c.want == "") {
					t.Errorf("delivered %d times", delivered)
				}
			})
		})
	}
}

func slow(n int) (all []types.ErrCode) {
	for range n {
		all = append(all, types.ErrConflict)
	}
	return all
}

func TestMessageWithALimitGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &post{answers: slow(1000)}
		began := time.Now()
		_, err := office(p).send(t.Context(), nil, ipc.SendRequest{Target: "3", Text: "hello", TimeoutMs: 300}, step.MailMessage)
		if types.CodeOf(err) != types.ErrTimeout || time.Since(began) != 300*time.Millisecond || len(p.got) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestAgentsSpeakForThemselvesAndToTheirFamily(t *testing.T) {
	p := &post{caller: 9, inside: true, parents: types.UUID{9}}
	s := office(p)
	if _, err := s.send(t.Context(), nil, ipc.SendRequest{Target: "3", Text: "do it", Key: "k"}, step.MailSteer); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("an agent steers: %v", err)
	}
	p.caller = 0
	if _, err := s.send(t.Context(), nil, ipc.SendRequest{Target: "3", Text: "do it"}, step.MailMessage); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("one that has left its agent: %v", err)
	}
	if len(p.got) != 0 {
		t.Errorf("%+v came", p.got)
	}
	for name, req := range map[string]ipc.SendRequest{"empty": {Text: " \n"}, "bytes": {Text: "\xff"}, "key": {Text: "x", Key: strings.Repeat("k", maxKey+1)},
		"limit": {Text: "x", TimeoutMs: -1}, "long": {Text: strings.Repeat("x", kernel.MaxMessage+1)}} {
		if _, err := s.send(t.Context(), nil, req, step.MailMessage); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsShownWithAMessageIsLookedAtBeforeItIsCarried(t *testing.T) {
	picture := "GIF89a\x01\x00\x01\x00\x00\x00\x00;"
	p := new(post)
	if _, err := office(p).send(t.Context(), nil, ipc.SendRequest{Target: "3", Text: "look", Attachments: []ipc.Attachment{{Name: "a.gif", Data: []byte(picture)}}}, step.MailSteer); err != nil ||
		len(p.got) != 1 || len(p.given) != 1 || p.given[0].Name != "a.gif" || string(p.given[0].Data) != picture {
		t.Errorf("%v, %+v, %+v", err, p.got, p.given)
	}
	for want, as := range map[string][]ipc.Attachment{
		"whatever the name says":                               {{Name: "a.png", Data: []byte("text")}},
		"21 files are attached and at most 20 are taken":       make([]ipc.Attachment, 21),
		"the attached files have 5.2 MB together, and at most": {{Name: "a.gif", Data: make([]byte, ipc.MaxAttached)}, {Name: "b.gif", Data: []byte{0}}},
	} {
		p := new(post)
		if _, err := office(p).send(t.Context(), nil, ipc.SendRequest{Target: "3", Text: "look", Attachments: as}, step.MailSteer); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) || len(p.got) != 0 {
			t.Errorf("%v, want %q; %d came", err, want, len(p.got))
		}
	}
}

func TestMailboxShowsWholeCharactersAndNoSecrets(t *testing.T) {
	s := office(new(post))
	if l := s.wireLetter(&kernel.Waiting{Head: []byte("the key is hunter2\nmore"), Size: 23}); l.Line != "the key is ***" || l.Binary || l.Kind != string(step.MailMessage) {
		t.Errorf("%+v", l)
	}
	if l := s.wireLetter(&kernel.Waiting{Mail: step.Mail{Attachments: []rnixctx.Attachment{{Name: "a.png", Media: "image/png", Bytes: 70}}}, Head: []byte("look\n\n[image a.png"), Size: 19}); l.Line != "look" || len(l.Attachments) != 1 || l.Attachments[0].Name != "a.png" {
		t.Errorf("%+v", l)
	}
	cut := []byte("naïve")[:3] // within the ï
	if l := s.wireLetter(&kernel.Waiting{Head: cut, Size: 6}); l.Line != "na" || l.Binary {
		t.Errorf("%+v", l)
	}
	if l := s.wireLetter(&kernel.Waiting{Head: []byte{0xff, 0xfe, 0, 1}, Size: 4}); !l.Binary || l.Line != "" {
		t.Errorf("%+v", l)
	}
}
