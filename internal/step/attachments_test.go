package step_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/internal/step/crashtest"
	"rnix/types"
)

func TestAnAttachmentIsKeptOnceAndComesBackAsItWas(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	sum, err := step.WriteAttachment(durable.OS, dir, []byte("picture"))
	again, err2 := step.WriteAttachment(durable.OS, dir, []byte("picture"))
	if err != nil || err2 != nil || sum != again {
		t.Fatal(sum, err, again, err2)
	}
	if files, err := os.ReadDir(filepath.Join(dir, "attachments")); err != nil || len(files) != 1 || step.AttachmentFile(sum) != "attachments/"+files[0].Name() {
		t.Errorf("%v, %v", files, err)
	}
	if got, err := step.ReadAttachment(durable.OS, dir, sum); err != nil || string(got) != "picture" {
		t.Errorf("%q, %v", got, err)
	}

	gone := strings.Repeat("0", 64)
	if err := step.CopyAttachments(durable.OS, dir, other, []rnixctx.Attachment{{SHA256: sum}, {SHA256: gone}, {SHA256: "../x"}}); err != nil {
		t.Error(err)
	}
	if got, err := step.ReadAttachment(durable.OS, other, sum); err != nil || string(got) != "picture" {
		t.Errorf("of the copy: %q, %v", got, err)
	}

	if err := os.WriteFile(filepath.Join(dir, step.AttachmentFile(sum)), []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]types.ErrCode{sum: types.ErrStorage, gone: types.ErrNotFound, "../steps.jsonl": types.ErrInvalid, "": types.ErrInvalid, strings.ToUpper(gone[1:]) + "F": types.ErrInvalid} {
		if _, err := step.ReadAttachment(durable.OS, dir, name); types.CodeOf(err) != want {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	if again, err := step.WriteAttachment(durable.OS, dir, []byte("picture")); err != nil || again != sum {
		t.Error(err)
	}
	if got, err := step.ReadAttachment(durable.OS, dir, sum); err != nil || string(got) != "picture" {
		t.Errorf("what was damaged is not written again: %q, %v", got, err)
	}
}

func TestOneHistoryKeepsSoManyAttachments(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "attachments"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range step.MaxAttached {
		if err := os.WriteFile(filepath.Join(dir, "attachments", strings.Repeat("x", 1+i%200)+strings.Repeat("y", i/200)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := step.WriteAttachment(durable.OS, dir, []byte("one more")); types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "1000 images and documents already") {
		t.Error(err)
	}
}

// A file that a kill has left before its record was written is removed by whoever opens the history next; those that a record names stay, whichever kind it is.
func TestAnAttachmentThatNoRecordNamesGoes(t *testing.T) {
	ctx, dir, id := t.Context(), t.TempDir(), types.NewUUID()
	l, err := step.OpenLocal(durable.OS, dir, step.Synced)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lease, err := l.Acquire(ctx, id, "one")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(l, id, lease)
	keep := func(text string) []rnixctx.Attachment {
		t.Helper()
		sum, err := step.WriteAttachment(durable.OS, l.Dir(id), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return []rnixctx.Attachment{{Name: text + ".png", Media: "image/png", SHA256: sum, Bytes: int64(len(text))}}
	}
	mail, err := step.MailRecord(step.Mail{Seq: 1, Kind: step.MailSteer, Text: "look", Attachments: keep("mail")})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.Message(&rnixctx.Message{Role: rnixctx.RoleUser, Content: "look", Attachments: keep("message")}), w.Marker(mail.Marker),
		w.Marker(step.InputMarker(1, step.Said{Text: "look", Attachments: keep("input")})), w.Commit(ctx))
	if err != nil {
		t.Fatal(err)
	}
	stray := keep("stray")[0].SHA256
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := step.ReadAttachment(durable.OS, l.Dir(id), stray); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Acquire(ctx, id, "two"); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(l.Dir(id), "attachments"))
	if _, gone := step.ReadAttachment(durable.OS, l.Dir(id), stray); err != nil || len(files) != 3 || types.CodeOf(gone) != types.ErrNotFound {
		t.Errorf("%v, %v, %v", files, err, gone)
	}
}

// attachmentsOp writes a message of the conversation, one of the mailbox and what a person says at a resume, each with an attachment: whenever it stops, what is
// on record has its file.
func attachmentsOp() *faultfs.Op {
	return &faultfs.Op{Name: "attachments", Changing: []string{step.EpochFile}, Prepare: prepared(1, histA), Recover: restart,
		Run: func(fsys durable.FS, ack func(string)) error {
			return crashtest.Session(fsys, func(j *step.Local) error {
				var kept error
				keep := func(what string) (sum string, ok bool) { // under the lease: who takes the history next removes what no record names
					sum, kept = step.WriteAttachment(j.FS(), j.Dir(histA), bytes.Repeat([]byte(what), 300))
					return sum, kept == nil
				}
				err := authored(j, histA, ack, func(a *author) {
					sum, ok := keep("picture ")
					if !ok {
						return
					}
					text := a.text("m")
					a.add(text, a.w.Message(&rnixctx.Message{Role: rnixctx.RoleUser, Content: text, Attachments: []rnixctx.Attachment{{Name: "a.png", Media: "image/png", SHA256: sum, Bytes: 2400}}}))
					a.commit()
				})
				for i, later := range []string{"mail ", "input "} {
					if err = errors.Join(err, kept); err != nil {
						return err
					}
					err = authored(j, histA, ack, func(a *author) {
						sum, ok := keep(later)
						if !ok {
							return
						}
						text, as := a.text("m"), []rnixctx.Attachment{{Name: "a.png", Media: "image/png", SHA256: sum, Bytes: 1500}}
						m := step.InputMarker(1, step.Said{Text: text, Attachments: as})
						if i == 0 {
							rec, _ := step.MailRecord(step.Mail{Seq: 1, Kind: step.MailSteer, Text: text, Attachments: as}) // words and numbers
							m = rec.Marker
						}
						a.add(text, a.w.Marker(m))
						a.commit()
					})
				}
				return errors.Join(err, kept)
			})
		},
		Check: func(fsys durable.FS, acked []string) error {
			err := crashtest.Sound(fsys, acked)
			dir := step.Dir(faultfs.DataDir, histA)
			h, herr := step.ReadSteps(fsys, dir, histA)
			if types.CodeOf(herr) == types.ErrNotFound {
				return err
			}
			err = errors.Join(err, herr)
			for _, r := range h.Records {
				as := step.AttachedTo(&r)
				if r.Marker != nil {
					if m, ok := step.MailOf(r.Marker); ok {
						as = m.Attachments
					}
				}
				for _, a := range as {
					_, rerr := step.ReadAttachment(fsys, dir, a.SHA256)
					err = errors.Join(err, rerr)
				}
			}
			return err
		}}
}
