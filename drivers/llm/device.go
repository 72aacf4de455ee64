package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// NewDevice puts a driver into the VFS. A file of the device takes an LLMRequest as JSON, or plain
// text, which is then the intent; performs it inside Write; and gives the LLMResponse as JSON to Read.
// The pieces of the answer go to the stream handler while they come.
func NewDevice(driver LLMDriver) vfs.VFSFileFactory {
	info := driver.Info()
	return func(subpath string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
		if subpath != "" {
			return nil, types.Errorf(types.ErrNotFound, "Open", "", "a model has no files below it: open it without %q", subpath)
		}
		f := &file{driver: driver, info: info}
		f.RequestFile = vfs.NewRequestFile(vfs.FileStat{Name: info.Name, Mode: "rw-", Type: "device"}, f.perform)
		return f, nil
	}
}

// file is an open model. RequestFile lets one request run at a time, so that perform has decoder for
// itself.
type file struct {
	*vfs.RequestFile
	driver  LLMDriver
	info    DriverInfo
	decoder decoder // exclusive to the request under way

	mu     sync.Mutex
	notify func(vfs.StreamPart) // +checklocks:mu
}

var (
	_ ModelInfo          = (*file)(nil)
	_ vfs.Modeler        = (*file)(nil)
	_ vfs.StreamNotifier = (*file)(nil)
	_ vfs.CallerBinder   = (*file)(nil)
	_ vfs.ReaderInto     = (*file)(nil)
)

// Info describes the model.
func (f *file) Info() DriverInfo { return f.info }

// ModelCard describes the model in the words of the VFS.
func (f *file) ModelCard() vfs.ModelCard {
	i := &f.info
	return vfs.ModelCard{Provider: i.Name, Driver: i.Driver, Model: i.Model, ContextWindow: i.ContextWindow, MaxAnswer: i.MaxAnswer,
		ExtraAnswer: i.ExtraAnswer, LeastAnswer: i.LeastAnswer, Free: i.Free, SaysCost: i.SaysCost, Acts: i.Acts, Aside: i.Aside, Others: i.Others}
}

// NotifyStream sets who gets the pieces of the answer; nil for nobody.
func (f *file) NotifyStream(handler func(vfs.StreamPart)) {
	f.mu.Lock()
	f.notify = handler
	f.mu.Unlock()
}

func (f *file) perform(ctx context.Context, caller vfs.Caller, data []byte) ([]byte, error) {
	req, err := f.decoder.decode(data)
	if err != nil {
		return nil, err
	}
	if len(req.Messages) == 0 && strings.TrimSpace(req.Intent) == "" {
		return nil, types.Errorf(types.ErrInvalid, "Write", "", `nothing to ask: give "messages" or "intent"`)
	}
	if caller.Attachment != nil {
		req.Attachment = func(a rnixctx.Attachment) ([]byte, error) { return caller.Attachment(a.SHA256) }
	}
	f.mu.Lock()
	notify := f.notify
	f.mu.Unlock()
	resp, err := attempt(WithCaller(ctx, caller), f.driver, req, func(ev StreamEvent) {
		if notify != nil {
			notify(vfs.StreamPart{Kind: string(ev.Type), Text: ev.Text, Until: ev.Until})
		}
	})
	if err != nil {
		return nil, ended(ctx, err)
	}
	answer, err := plainJSON(resp)
	if err != nil {
		return nil, types.Errorf(types.ErrDriver, "Write", "", "the answer cannot be written as JSON: %w", err)
	}
	return answer, nil
}

// plainJSON encodes v with <, > and & as they are: what a model asked for is shown to people.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
