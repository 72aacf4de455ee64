package step

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"path/filepath"
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// attachmentsDir is the directory of a history in which the images and documents of its messages lie, each once, under the SHA-256 of
// its bytes in hexadecimal. Part of the on-disk format.
const attachmentsDir = "attachments"

// MaxAttached is how many files the messages of one history may have beside them.
const MaxAttached = 1000

// AttachmentFile returns the file of an attachment, from the directory of its history.
func AttachmentFile(sum string) string { return attachmentsDir + "/" + sum }

// attachmentPath refuses what is no sum: it comes from a record, and must lead nowhere else.
func attachmentPath(dir, sum string) (string, error) {
	if len(sum) != 2*sha256.Size || strings.Trim(sum, "0123456789abcdef") != "" {
		return "", types.Errorf(types.ErrInvalid, "Attachment", "", "%.80q is no SHA-256 in hexadecimal", sum)
	}
	return filepath.Join(dir, attachmentsDir, sum), nil
}

// WriteAttachment makes the bytes of an attachment durable and returns their sum; dir is the directory of the history. It is done before
// the record that names it is written: a crash leaves a file that no record names, and no record without its file. What is
// there already is not written again.
func WriteAttachment(fsys durable.FS, dir string, data []byte) (sum string, err error) {
	digest := sha256.Sum256(data)
	sum = hex.EncodeToString(digest[:])
	all := filepath.Join(dir, attachmentsDir)
	if _, err := ReadAttachment(fsys, dir, sum); err == nil { // whoever has written it may have been killed before its name was durable
		return sum, errors.Join(fsys.SyncDir(all), fsys.SyncDir(dir))
	}
	if err := durable.MkdirAll(fsys, all); err != nil {
		return "", err
	}
	if names, err := fsys.ReadDir(all); err == nil && len(names) >= MaxAttached {
		return "", types.Errorf(types.ErrExhausted, "Attach", "", "the conversation has %d images and documents already, and no more are kept", len(names))
	}
	return sum, durable.WriteFile(fsys, filepath.Join(all, sum), data, durable.Durable)
}

// ReadAttachment reads an attachment and checks it. It is NOT_FOUND if it is not there, and STORAGE if it is not what was written.
func ReadAttachment(fsys durable.FS, dir, sum string) ([]byte, error) {
	path, err := attachmentPath(dir, sum)
	if err != nil {
		return nil, err
	}
	b, err := durable.ReadFile(fsys, path)
	switch {
	case types.CodeOf(err) == types.ErrNotFound:
		return nil, types.Errorf(types.ErrNotFound, "Attachment", path, "the file is not there any more")
	case err != nil:
		return nil, err
	}
	if got := sha256.Sum256(b); hex.EncodeToString(got[:]) != sum {
		return nil, types.Errorf(types.ErrStorage, "Attachment", path, "damaged: its %d bytes are not those that were written", len(b))
	}
	return b, nil
}

// strays are the attachments of a history that none of its records names, as far as these were looked at: a kill between the file and its record has left
// them, or a write that was cut off.
type strays struct {
	dir   string
	names map[string]bool
}

// straysIn returns all attachments of a history; none if they cannot be listed.
func straysIn(fsys durable.FS, dir string) strays {
	s := strays{dir: filepath.Join(dir, attachmentsDir)}
	list, err := fsys.ReadDir(s.dir)
	if err != nil {
		return s
	}
	s.names = map[string]bool{}
	for _, e := range list {
		if _, err := attachmentPath(dir, e.Name()); err == nil {
			s.names[e.Name()] = true
		}
	}
	return s
}

// look notes those that a record names.
func (s *strays) look(record []byte) {
	const mark = `"sha256":"`
	for len(s.names) > 0 {
		i := bytes.Index(record, []byte(mark))
		if i < 0 {
			return
		}
		record = record[i+len(mark):]
		delete(s.names, string(record[:min(2*sha256.Size, len(record))]))
	}
}

// remove removes them. damaged says that not all records could be looked at: then they stay.
func (s *strays) remove(fsys durable.FS, damaged bool) error {
	if _, err := fsys.Stat(s.dir); missing(err) {
		return nil
	}
	err := durable.RemoveTemp(fsys, s.dir)
	for name := range s.names {
		if !damaged && err == nil {
			err = fsys.Remove(filepath.Join(s.dir, name))
		}
	}
	return err
}

// AttachedTo returns the attachments that a record brings into the conversation, now or when the step in hand has ended. Those of the mailbox are
// not among them: the record of their delivery names them.
func AttachedTo(r *Record) []rnixctx.Attachment {
	switch {
	case r.Message != nil:
		return r.Message.Attachments
	case r.Marker != nil && r.Marker.Name == MarkerInput:
		return SaidBy(r.Marker).Attachments
	}
	return nil
}

// Attachments returns those that the messages of records, and what persons have said at a resume, name, each once, up to a record; 0 = all.
func Attachments(records iter.Seq2[Record, error], last uint64) (out []rnixctx.Attachment, err error) {
	seen := map[string]bool{}
	for r, err := range records {
		switch code := types.CodeOf(err); {
		case code == types.ErrStorage || code == types.ErrInvalid:
			return out, nil // what is behind damage is of no history
		case err != nil:
			return nil, err
		case last > 0 && r.Seq > last:
			return out, nil
		}
		for _, a := range AttachedTo(&r) {
			if !seen[a.SHA256] {
				seen[a.SHA256] = true
				out = append(out, a)
			}
		}
	}
	return out, nil
}

// CopyAttachments makes attachments of one history durable for another; the arguments are their directories. What cannot be read is left
// out: a model is told that it is missing.
func CopyAttachments(fsys durable.FS, from, to string, as []rnixctx.Attachment) error {
	for i := range as {
		data, err := ReadAttachment(fsys, from, as[i].SHA256)
		if err != nil {
			continue
		}
		if _, err := WriteAttachment(fsys, to, data); err != nil {
			return err
		}
	}
	return nil
}
