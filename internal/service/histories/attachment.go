package histories

import (
	"context"

	"rnix/internal/media"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// attachment returns an image or a PDF of a conversation.
func (d *Service) attachment(_ context.Context, peer *ipc.Peer, req ipc.AttachmentRequest) (ipc.AttachmentResponse, error) {
	t, err := d.Finder.Find(peer, "read_attachment", req.Target)
	if err != nil {
		return ipc.AttachmentResponse{}, err
	}
	data, err := d.Journal.Blobs().Attachment(t.UUID, req.SHA256)
	if err != nil {
		return ipc.AttachmentResponse{}, service.Named(d.Finder.Lost(&t, req.Target, err), "read_attachment", req.Target)
	}
	kind := media.Type(data[:min(len(data), media.SniffLen)])
	if kind == "" { // such is never written
		return ipc.AttachmentResponse{}, types.Errorf(types.ErrStorage, "read_attachment", req.Target, "%s is no image and no PDF", req.SHA256)
	}
	return ipc.AttachmentResponse{Media: kind, Data: data}, nil
}
