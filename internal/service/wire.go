package service

import (
	"rnix/internal/media"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Each returns what wire makes of each element of list; null stays null.
func Each[A, B any](list []A, wire func(*A) B) []B {
	if list == nil {
		return nil
	}
	out := make([]B, len(list))
	for i := range list {
		out[i] = wire(&list[i])
	}
	return out
}

// WireIntent is a call on the wire that was about to run.
func WireIntent(c *step.Intent) ipc.CallIntent {
	return ipc.CallIntent{Step: c.Step, CallID: c.CallID, Tool: c.Tool, Path: c.Path, Input: c.Input, Effect: c.Effect, Child: c.Child,
		Background: c.Background, Key: c.Key, Before: (*ipc.FilesSnapshot)(c.Before)}
}

// WireInput is an input on the wire.
func WireInput(in *step.Input) ipc.Input { return ipc.Input(*in) }

// CheckAttached refuses the attachments of a request that cannot go along with one message.
func CheckAttached(syscall string, as []ipc.Attachment) error {
	all := 0
	for i := range as {
		all += len(as[i].Data)
	}
	if all > ipc.MaxAttached {
		return types.Errorf(types.ErrInvalid, syscall, "", "the attached files have %s together, and at most %s are taken: name one in the text, and the agent reads it", media.Size(int64(all)), media.Size(ipc.MaxAttached))
	}
	return kernel.CheckAttachments(syscall, Each(as, FromAttachment))
}

// FromAttachment is an attachment of a request.
func FromAttachment(a *ipc.Attachment) vfs.Attachment { return vfs.Attachment(*a) }

// FromInput is an input of a request.
func FromInput(in *ipc.Input) step.Input { return step.Input(*in) }
