package chat

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/media"
	"rnix/ipc"
	"rnix/types"
)

// picture writes an image into the directory of a desk and returns how a request holds it.
func (d *desk) picture(name string, w int) string {
	d.t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, 2))); err != nil {
		d.t.Fatal(err)
	}
	d.file(name, b.Bytes())
	return `"attachments":[{"name":"` + filepath.Base(name) + `","data":"` + base64.StdEncoding.EncodeToString(b.Bytes()) + `"}]`
}

func (d *desk) file(name string, data []byte) {
	d.t.Helper()
	path := filepath.Join(d.m.o.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) calledWith(method, part string) bool {
	for _, c := range d.calls {
		if strings.HasPrefix(c, method+" ") && strings.Contains(c, part) {
			return true
		}
	}
	return false
}

func TestEveryMessageBringsTheImagesThatItNames(t *testing.T) {
	for method, state := range map[string]string{"spawn": "", "steer": "running", "resume": "dead"} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t)
			if state != "" {
				d = begun(t)
			}
			if state == "dead" {
				d.reply["get_proc_detail"] = detail("dead")
				d.does(d.m.settle())
			}
			d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
			holds := d.picture("my shot.png", 640)
			d.types(`what is wrong in @"my shot.png" ?`)
			if !strings.Contains(d.sees(), "the agent is shown [image my shot.png 640×2, ") {
				t.Errorf("sees:\n%s", d.sees())
			}
			d.key("enter")
			if !d.calledWith(method, holds) {
				t.Errorf("calls %q", d.calls)
			}
			if strings.Contains(d.sees(), "the agent is shown") {
				t.Errorf("sees after that:\n%s", d.sees())
			}
		})
	}
}

func TestWhatCannotBeShownIsSaidBeforeAnythingIsSent(t *testing.T) {
	for text, c := range map[string]struct {
		data []byte
		want string
	}{
		"look at @cut.png":   {[]byte("\x89PNG\r\n\x1a\n"), "cut.png cannot be attached: the PNG image is damaged"},
		"look at @large.png": {append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, media.MaxBytes)...), "large.png cannot be attached: the PNG image has 21.0 MB, and models take at most 3.9 MB"},
		"look at @none.png.": {nil, "no such file: none.png; correct"},
		"look at @none.txt!": {nil, "no such file: none.txt; correct"},
		"look at @bin":       {[]byte{0, 1}, "is not text in UTF-8"},
	} {
		for _, working := range []bool{false, true} {
			d := newDesk(t)
			if working {
				d = begun(t)
			}
			if c.data != nil {
				d.file(strings.TrimPrefix(strings.Fields(text)[2], "@"), c.data)
			}
			before := len(d.calls)
			d.says(text)
			if len(d.calls) != before || d.m.ed.value() != text || len(d.m.unsent()) != 0 || !strings.Contains(strings.Join(strings.Fields(d.m.note), " "), c.want) {
				t.Errorf("%s: calls %q, typed %q, note %q", text, d.calls[before:], d.m.ed.value(), d.m.note)
			}
		}
	}
	d := newDesk(t)
	var text strings.Builder
	for i := range 21 {
		name := string(rune('a'+i)) + ".png"
		d.picture(name, 1)
		text.WriteString(" @" + name)
	}
	if d.says(text.String()); len(d.calls) != 0 || !strings.Contains(d.m.note, "the message has 21 images and PDFs, and at most 20 are taken") {
		t.Errorf("%q", d.m.note)
	}
}

// What was read when it was said goes along, whatever happens to the file until it can be sent.
func TestAQueuedMessageKeepsItsImages(t *testing.T) {
	d := begun(t)
	holds := d.picture("a.png", 3)
	comes := d.goes()
	d.says("see @a.png")
	if !strings.Contains(d.sees(), "see @a.png  [image a.png 3×2, ") {
		t.Errorf("sees:\n%s", d.sees())
	}
	if err := os.Remove(filepath.Join(d.m.o.Dir, "a.png")); err != nil {
		t.Fatal(err)
	}
	comes("running")
	if !d.calledWith("steer", holds) {
		t.Errorf("calls %q", d.calls)
	}
}

// A message that meets the end of the agent on its way resumes it, with what it shows.
func TestAnImageGoesAlongWhenTheAgentEndsMeanwhile(t *testing.T) {
	d := begun(t)
	holds := d.picture("a.png", 3)
	d.reply["steer"] = types.Errorf(types.ErrBrokenPipe, "Steer", "", "it has ended")
	d.reply["resume"] = ipc.ResumeResponse{SpawnResponse: ipc.SpawnResponse{PID: 8, UUID: someID}}
	d.says("see @a.png")
	if !d.calledWith("resume", holds) {
		t.Errorf("calls %q", d.calls)
	}
}

func TestWhatTheCommandLineAttachesGoesWithTheFirstMessage(t *testing.T) {
	d := newDesk(t)
	d.picture("a.png", 3)
	data, err := media.Read(filepath.Join(d.m.o.Dir, "a.png"))
	if err != nil {
		t.Fatal(err)
	}
	d.m.given = []ipc.Attachment{{Name: "a.png", Data: data}}
	lookBeside(d.m)
	if !strings.Contains(d.sees(), "the agent is shown [image a.png 3×2, ") {
		t.Errorf("sees:\n%s", d.sees())
	}
	d.reply["spawn"] = types.Errorf(types.ErrInvalid, "Spawn", "x", "there is no such model")
	d.says("look")
	if len(d.m.given) != 1 {
		t.Fatal("what was not sent is lost")
	}
	d.reply["spawn"] = ipc.SpawnResponse{PID: 7, UUID: someID}
	d.reply["get_proc_detail"] = detail("running")
	d.key("enter")
	d.says("more")
	if !strings.Contains(strings.Join(d.calls, "\n"), `"attachments":[{"name":"a.png"`) || d.calledWith("steer", "attachments") || len(d.m.given) != 0 {
		t.Errorf("calls %q", d.calls)
	}
}

func TestADroppedImageIsNamedAndOtherPastesStayText(t *testing.T) {
	d := newDesk(t)
	d.picture("my shot.png", 3)
	d.picture("b.png", 3)
	d.file("notes.txt", []byte("text"))
	dir := d.m.o.Dir
	d.picture("../elsewhere/c.png", 3)
	for paste, want := range map[string]string{
		dir + "/b.png":                           "@b.png ",
		" '" + dir + "/my shot.png' ":            `@"my shot.png" `,
		dir + `/my\ shot.png`:                    `@"my shot.png" `,
		dir + "/my shot.png":                     `@"my shot.png" `,
		"file://" + dir + "/my%20shot.png":       `@"my shot.png" `,
		dir + "/b.png '" + dir + "/my shot.png'": `@b.png @"my shot.png" `,
		filepath.Dir(dir) + "/elsewhere/c.png":   "@" + filepath.Dir(dir) + "/elsewhere/c.png ",
		dir + "/notes.txt":                       dir + "/notes.txt",
		"b.png":                                  "b.png",
		"see " + dir + "/b.png":                  "see " + dir + "/b.png",
		dir + "/nosuch.png":                      dir + "/nosuch.png",
	} {
		d.m.ed.set("")
		if d.types(paste); d.m.ed.value() != want {
			t.Errorf("%q becomes %q, want %q", paste, d.m.ed.value(), want)
		}
	}
	d.m.ed.set("")
	d.types("see @")
	d.types(dir + "/b.png")
	if d.m.ed.value() != "see @b.png " {
		t.Errorf("%q", d.m.ed.value())
	}
}

func TestTheImageOfTheClipboardIsPutIn(t *testing.T) {
	d := newDesk(t)
	ctrlV := func() { d.tells(tea.KeyPressMsg{Code: 'v', Mod: tea.ModCtrl}) }
	if ctrlV(); !strings.Contains(d.sees(), "name an image as @FILE") {
		t.Errorf("sees:\n%s", d.sees())
	}
	holds := d.picture("pasted-1.png", 3)
	path := filepath.Join(d.m.o.Dir, "pasted-1.png")
	d.m.o.Clipboard = func(context.Context) (string, error) { return path, nil }
	d.types("see")
	ctrlV()
	if d.m.ed.value() != "see @"+path+" " || !strings.Contains(d.sees(), "the agent is shown [image pasted-1.png 3×2, ") {
		t.Errorf("typed %q, sees:\n%s", d.m.ed.value(), d.sees())
	}
	d.key("enter")
	if !d.calledWith("spawn", holds) {
		t.Errorf("calls %q", d.calls)
	}
	d.m.o.Clipboard = func(context.Context) (string, error) { return "", errors.New("there is no image in the clipboard") }
	if ctrlV(); d.m.ed.value() != "" || !strings.Contains(d.sees(), "there is no image in the clipboard") {
		t.Errorf("typed %q, sees:\n%s", d.m.ed.value(), d.sees())
	}
}
