package launch

import (
	"strings"
	"testing"

	"rnix/internal/config"
	"rnix/ipc"
	"rnix/types"
)

// A model that is a CLI is asked in words alone, so whoever attaches files for it is warned. An agent CLI takes what it takes, and what it does not is refused
// by its name.
func TestWhatAModelIsNotShownIsSaid(t *testing.T) {
	image := ipc.Attachment{Name: "a.gif", Data: []byte("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;")}
	pdf := ipc.Attachment{Name: "a.pdf", Data: []byte("%PDF-1.7\n1 0 obj << /Type /Pages /Count 1 >> endobj\n<< /Type /Page /Parent 1 0 R >>\ntrailer << >>\n%%EOF\n")}
	for driver, want := range map[string]struct {
		warned, image, pdf bool
	}{
		"claude-agent": {}, "codex-agent": {pdf: true}, "opencode-agent": {}, config.DriverClaude: {warned: true}, config.DriverCursor: {warned: true}, "anthropic": {}, "openai": {}, "replay": {},
	} {
		c := config.Choice{Provider: config.Provider{Name: "it", Driver: driver}}
		if got := unshown(&c, []ipc.Attachment{image}); (len(got) == 1 && got[0] == "it is asked in words alone: it is told the names of the attached files, and is not shown them") != want.warned {
			t.Errorf("%s: %q", driver, got)
		}
		if got := unshown(&c, nil); got != nil {
			t.Errorf("%s, without files: %q", driver, got)
		}
		if err := Takes("Spawn", &c.Provider, []ipc.Attachment{image}); (err != nil) != want.image {
			t.Errorf("%s: %v", driver, err)
		}
		err := Takes("Spawn", &c.Provider, []ipc.Attachment{image, pdf})
		if (err != nil) != want.pdf {
			t.Errorf("%s: %v", driver, err)
		}
		if err != nil && (types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), `cannot show it "a.pdf": codex takes images, and no PDFs; name the file in the text instead`)) {
			t.Errorf("%s: %v", driver, err)
		}
	}
}
