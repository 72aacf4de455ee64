package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"rnix/agent"
)

// Refuses returns why a command line of that name cannot be shown an attachment; "" if it can.
func (a Abilities) Refuses(name string, shown *agent.Attachment) string {
	switch {
	case shown.Image() && !a.Images:
		return name + " takes no images"
	case !shown.Image() && !a.Documents && a.Images:
		return name + " takes images, and no PDFs"
	case !shown.Image() && !a.Documents:
		return name + " takes no PDFs"
	}
	return ""
}

// endings are how names of files end, by what is in them.
var endings = map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "application/pdf": ".pdf"}

// shown adds a file for each attachment of a session and returns their paths. A file has the name of what is in it, so that none takes the place of
// another that the program may still read.
func (b *builder) shown(s *agent.Spec) (paths []string) {
	for i := range s.Attachments {
		a := &s.Attachments[i]
		end, ok := endings[a.Media]
		if !ok {
			b.refuse("%s cannot be shown to it: its type is %q", strings.ToValidUTF8(a.Name, "?"), a.Media)
			return nil
		}
		sum := sha256.Sum256(a.Data)
		paths = append(paths, b.file("shown/"+hex.EncodeToString(sum[:12])+end, a.Data))
	}
	return paths
}
