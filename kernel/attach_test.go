package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"sync"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// blobStore is a memStore that keeps attachments.
type blobStore struct {
	*memStore
	blobs sync.Map // SHA-256 -> []byte
}

func (s *blobStore) SaveAttachment(_ types.UUID, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	s.blobs.Store(hex.EncodeToString(sum[:]), data)
	return hex.EncodeToString(sum[:]), nil
}

func (s *blobStore) Attachment(_ types.UUID, sum string) ([]byte, error) {
	data, ok := s.blobs.Load(sum)
	if !ok {
		return nil, types.Errorf(types.ErrNotFound, "Attachment", sum, "no")
	}
	return data.([]byte), nil
}

func aPicture(t *testing.T, w int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, 2))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAttachmentsAreKeptAndNamedAndReadByTheModelsDevice: those of a person, and those of a tool.
func TestAttachmentsAreKeptAndNamedAndReadByTheModelsDevice(t *testing.T) {
	given, shot := aPicture(t, 7), aPicture(t, 9)
	s := newSys(t, func(c *Config) {
		c.Store = &blobStore{memStore: c.Store.(*memStore)}
		err := c.Devices.RegisterTools("/dev/camera", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			return vfs.NewRequestFile(vfs.FileStat{}, func(ctx context.Context, _ vfs.Caller, _ []byte) ([]byte, error) {
				vfs.Attach(ctx, "/tmp/a [b]\n.png", shot)
				vfs.Attach(ctx, "bad.png", []byte("no picture"))
				return []byte("click\n"), nil
			}), nil
		}, []vfs.Tool{{Name: "camera", Schema: json.RawMessage(`{"type":"object"}`), Path: "/dev/camera", Effect: vfs.EffectNone}})
		if err != nil {
			t.Fatal(err)
		}
	})
	var seen [][]byte
	s.model = func(_ context.Context, c vfs.Caller, turn int) (reply, error) {
		if turn == 1 {
			return reply{Calls: []string{`camera {}`}}, nil
		}
		for _, b := range [][]byte{given, shot} {
			sum := sha256.Sum256(b)
			data, err := c.Attachment(hex.EncodeToString(sum[:]))
			if err != nil {
				return reply{}, err
			}
			seen = append(seen, data)
		}
		return reply{Calls: []string{`complete {"result":"seen"}`}}, nil
	}
	pid := s.spawn(func(o *SpawnOpts) { o.Attachments = []vfs.Attachment{{Name: "given.png", Data: given}} })
	e := s.await(pid, event.Exited)
	if len(seen) != 2 || !bytes.Equal(seen[0], given) || !bytes.Equal(seen[1], shot) {
		t.Errorf("the device has read %d", len(seen))
	}
	var said []*rnixctx.Message
	for _, r := range s.stores.of(e.UUID).committed {
		if r.Message != nil && r.Message.Role != rnixctx.RoleAssistant {
			said = append(said, r.Message)
		}
	}
	if len(said) < 2 || !strings.HasSuffix(said[0].Content, "do it\n\n[image given.png 7×2, "+sizeOf(given)+"]") || len(said[0].Attachments) != 1 || said[0].Attachments[0].Width != 7 {
		t.Fatalf("%+v", said)
	}
	want := "click\n[image a (b).png 9×2, " + sizeOf(shot) + "]\n[bad.png is not shown: the content is no PNG, JPEG, GIF or WebP image and no PDF, whatever the name says]"
	if said[1].Content != want || len(said[1].Attachments) != 1 || said[1].Attachments[0].Name != "a (b).png" {
		t.Errorf("%+v, want %q", said[1], want)
	}
}

func sizeOf(b []byte) string {
	a := rnixctx.Attachment{Media: "image/png", Bytes: int64(len(b))}
	_, size, _ := strings.Cut(a.Label(), ", ")
	return strings.TrimSuffix(size, "]")
}

func TestASpawnWithWhatCannotBeAttachedLeavesNoTrace(t *testing.T) {
	s := newSys(t)
	s.model = func(context.Context, vfs.Caller, int) (reply, error) { t.Error("it runs"); return reply{}, nil }
	many := make([]vfs.Attachment, rnixctx.MaxAttachments+1)
	for want, as := range map[string][]vfs.Attachment{
		"fake.png: cannot be attached: the content is no PNG": {{Name: "x/fake.png", Data: []byte("text")}},
		"21 files are attached and at most 20 are taken":      many,
		"keeps no histories": {{Name: "a.png", Data: aPicture(t, 1)}}, // its store takes none
	} {
		if _, err := s.Spawn("do it", nil, opts(func(o *SpawnOpts) { o.Attachments = as })); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if n := len(s.stores.recs); n != 0 {
		t.Errorf("%d histories are left", n)
	}
}

var _ Store = (*blobStore)(nil)

// What is shown with a message is kept before the message is taken, and the model is shown it where it gets the message: with what a person says, with what
// others send, and with what its call of recv has taken.
func TestAMessageBringsItsAttachments(t *testing.T) {
	said, sent, taken := aPicture(t, 3), aPicture(t, 4), aPicture(t, 5)
	s, m := newSys(t, func(c *Config) { c.Store = &blobStore{memStore: c.Store.(*memStore)} }), newStepModel()
	s.model, s.tool = m.model, func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
	pid := s.spawn()
	<-m.asked
	post := func(kind step.MailKind, name string, data []byte) {
		t.Helper()
		if _, err := s.PostAttached(t.Context(), pid, step.Mail{Kind: kind, Text: "look"}, []vfs.Attachment{{Name: name, Data: data}}, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.PostAttached(t.Context(), pid, step.Mail{Kind: step.MailSteer, Text: "look"}, []vfs.Attachment{{Name: "fine.png", Data: said}, {Name: "bad.png", Data: []byte("no picture")}}, false); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "bad.png") {
		t.Error(err)
	}
	post(step.MailMessage, "sent.png", sent)
	post(step.MailSteer, "said.png", said)
	m.say(reply{Calls: []string{"tool {}"}})
	<-m.asked
	post(step.MailMessage, "taken.png", taken)
	m.say(reply{Calls: []string{`recv {"timeout_s":0}`}})
	<-m.asked
	m.say(reply{Content: "done"})
	e := s.await(pid, event.Exited)
	var got []string
	for _, r := range s.stores.of(e.UUID).committed {
		if r.Message == nil {
			continue
		}
		for _, a := range r.Message.Attachments {
			got = append(got, string(r.Message.Role)+" "+a.Name)
			if !strings.Contains(r.Message.Content, a.Label()) {
				t.Errorf("%q does not name %s", r.Message.Content, a.Name)
			}
		}
	}
	if want := "user said.png, user sent.png, tool taken.png"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if _, err := s.PostAttached(t.Context(), pid, step.Mail{Kind: step.MailSteer, Text: "look"}, []vfs.Attachment{{Name: "late.png", Data: said}}, false); types.CodeOf(err) != types.ErrBrokenPipe && types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("of one that has ended: %v", err)
	}
}

// A message that is refused leaves no file, and one that waits for its room writes it when it has that.
func TestARefusedMessageLeavesNoFile(t *testing.T) {
	store := &blobStore{}
	s, m := newSys(t, func(c *Config) { store.memStore = c.Store.(*memStore); c.Store = store }), newStepModel()
	s.model = m.model
	pid := s.spawn()
	<-m.asked
	kept := func() (n int) {
		store.blobs.Range(func(any, any) bool { n++; return true })
		return n
	}
	post := func(wait bool, text string, data []byte) error {
		_, err := s.PostAttached(t.Context(), pid, step.Mail{Kind: step.MailMessage, Text: text}, []vfs.Attachment{{Name: "a.png", Data: data}}, wait)
		return err
	}
	if err := post(false, strings.Repeat("x", MaxMessage), aPicture(t, 3)); types.CodeOf(err) != types.ErrInvalid || kept() != 0 {
		t.Errorf("%v, %d files", err, kept())
	}
	for range mailMax {
		if _, err := s.Post(t.Context(), pid, step.Mail{Kind: step.MailMessage, Text: "more"}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := post(false, "look", aPicture(t, 3)); types.CodeOf(err) != types.ErrExhausted || kept() != 0 {
		t.Errorf("%v, %d files", err, kept())
	}
	done := make(chan error, 1)
	go func() { done <- post(true, "look", aPicture(t, 4)) }() // ends when a message is taken
	if _, err := s.Recv(pid); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || kept() != 1 {
		t.Errorf("%v, %d files", err, kept())
	}
	m.say(reply{Content: "done"})
	<-m.asked
	m.say(reply{Content: "done"})
	s.await(pid, event.Exited)
}

// A prompt gets no more files at once than a message may have, and the messages behind them with the next.
func TestMessagesWithManyAttachmentsComeInPortions(t *testing.T) {
	var ms []*Message
	for range 3 {
		ms = append(ms, &Message{Data: []byte("x"), mail: &step.Mail{Attachments: make([]rnixctx.Attachment, 9)}})
	}
	if n := portion(ms); n != 2 {
		t.Errorf("%d messages at once", n)
	}
	ms[0].mail.Attachments = make([]rnixctx.Attachment, rnixctx.MaxAttachments)
	if n := portion(ms); n != 1 {
		t.Errorf("%d messages at once", n)
	}
}

// Whoever takes a message out of a mailbox by hand is told that a model was not shown what came with it.
func TestATakenMessageSaysWhatWasNotShown(t *testing.T) {
	a := rnixctx.Attachment{Name: "a.png", Media: "image/png", Width: 1, Height: 1, Bytes: 70}
	m := &Message{Data: []byte(rnixctx.WithLabels("look", []rnixctx.Attachment{a})), mail: &step.Mail{Attachments: []rnixctx.Attachment{a}}}
	if got := m.Said(); !strings.HasPrefix(got, "look\n\n[image a.png 1×1, 70 bytes]\n[a.png is not shown: ") {
		t.Errorf("%q", got)
	}
}
