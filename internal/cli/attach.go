package cli

import (
	"path/filepath"

	rnixctx "rnix/context"
	"rnix/internal/media"
	"rnix/ipc"
)

// attachments reads the images and PDFs that the agent is shown with its intent. They are read here, with the rights of whoever starts it.
func (o *runOptions) attachments() ([]ipc.Attachment, error) {
	if len(o.attach) > rnixctx.MaxAttachments {
		return nil, usagef("name the others in the task, and the agent reads them", "--attach: %d files are given and at most %d are taken", len(o.attach), rnixctx.MaxAttachments)
	}
	var out []ipc.Attachment
	all := 0
	for _, file := range o.attach {
		path := file
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.app.host.Dir, path)
		}
		data, err := media.Read(path)
		if err != nil {
			return nil, usagef("", "--attach: %w", err)
		}
		if all += len(data); all > ipc.MaxAttached {
			return nil, usagef("name it in the task, and the agent reads it", "--attach %s: the attached files have more than %s together", file, media.Size(ipc.MaxAttached))
		}
		out = append(out, ipc.Attachment{Name: filepath.Base(path), Data: data})
	}
	return out, nil
}
