package fs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"syscall"
	"testing"

	"rnix/internal/media"
	"rnix/types"
	"rnix/vfs"
)

func picture(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// look reads a file as the kernel does, with what is attached to the answer.
func look(t *testing.T, c vfs.Caller, path string) (string, []vfs.Attachment, error) {
	t.Helper()
	f, err := New(nil, nil).Open("", vfs.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.(vfs.CallerBinder).BindCaller(c); err != nil {
		return "", nil, err
	}
	in, err := json.Marshal(map[string]string{"op": "read_file", "path": path})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Write(context.Background(), in); err != nil {
		return "", nil, err
	}
	text, err := f.Read(0)
	return string(text), f.(vfs.Attacher).Attachments(), err
}

func TestAnImageThatIsReadIsAttachedAndAHostileOneIsNot(t *testing.T) {
	good := picture(t, 64, 48)
	out := tree(t, "secret.png", good)
	dir := tree(t, "shot", good, "doc.pdf", "%PDF-1.4\n<</Type/Page>>\n%%EOF\n", "cut.png", good[:len(good)-9], "text.png", "no picture\n", "empty.png", "",
		"large.png", good+strings.Repeat("x", media.MaxImage))
	if err := os.Symlink(out+"/secret.png", dir+"/link.png"); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/pipe.png", 0o600); err != nil {
		t.Fatal(err)
	}
	c := vfs.Caller{PID: 1, WorkDir: dir}
	for name, want := range map[string]string{"shot": "shot: PNG image, ", "doc.pdf": "doc.pdf: PDF, 30 bytes"} {
		text, as, err := look(t, c, name)
		if err != nil || !strings.HasPrefix(text, want) || len(as) != 1 || as[0].Name != name {
			t.Errorf("%s: %q, %d attached, %v", name, text, len(as), err)
		}
	}
	for name, want := range map[string]string{
		"cut.png": "[not shown: the PNG image is cut off", "text.png": "1\tno picture", "empty.png": "the file is empty",
		"large.png": "[not shown: the PNG image has 3.9 MB, and models take at most 3.9 MB",
	} {
		if text, as, err := look(t, c, name); err != nil || !strings.Contains(text, want) || len(as) != 0 {
			t.Errorf("%s: %q, %d attached, %v", name, text, len(as), err)
		}
	}
	for _, name := range []string{"link.png", "pipe.png", out + "/secret.png", "nosuch.png"} {
		if text, as, err := look(t, c, name); err == nil || len(as) != 0 {
			t.Errorf("%s: %q, %d attached", name, text, len(as))
		}
	}
	if _, _, err := look(t, c, out+"/secret.png"); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("what may not be read: %v", err)
	}
	if got := fmt.Sprint(len(good)); !strings.Contains(answerTo(t, dir, "read_file", `{"path":"shot"}`), got+" bytes") {
		t.Error("its size is not said")
	}
}
