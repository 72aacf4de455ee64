package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	rnixctx "rnix/context"
	"rnix/internal/media"
	"rnix/ipc"
)

// attachFlag is the flag for the images and PDFs that go along with what is said.
func attachFlag(c *cobra.Command, files *[]string) {
	c.Flags().StringArrayVar(files, "attach", nil, "an image (PNG, JPEG, GIF, WebP) or a PDF to show to the model, as `FILE`; may be repeated")
}

// attachments reads the images and PDFs that the model is shown with a message. They are read here, with the rights of whoever sends it.
func attachments(a *app, files []string) ([]ipc.Attachment, error) {
	if len(files) > rnixctx.MaxAttachments {
		return nil, usagef("name the others in the text, and the agent reads them", "--attach: %d files are given and at most %d are taken", len(files), rnixctx.MaxAttachments)
	}
	var out []ipc.Attachment
	all := 0
	for _, file := range files {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(a.host.Dir, path)
		}
		data, err := media.Read(path)
		if err != nil {
			return nil, usagef("", "--attach: %w", err)
		}
		if all += len(data); all > ipc.MaxAttached {
			return nil, usagef("name it in the text, and the agent reads it", "--attach %s: the attached files have more than %s together", file, media.Size(ipc.MaxAttached))
		}
		out = append(out, ipc.Attachment{Name: filepath.Base(path), Data: data})
	}
	return out, nil
}
