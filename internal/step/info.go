package step

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// Meta is process-meta.json: what a history began with and steps do not repeat.
type Meta struct {
	V            int        `json:"v"`
	UUID         types.UUID `json:"uuid"`
	SystemPrompt string     `json:"system_prompt"`
	Tools        []ToolDef  `json:"tools"`
	Model        *ModelDef  `json:"model,omitempty"` // null: there is none, or an early version wrote it
}

// ModelDef is the model that the last run began with.
type ModelDef struct {
	Provider      string `json:"provider"`
	Driver        string `json:"driver"`
	Model         string `json:"model,omitempty"`
	ContextWindow int    `json:"context_window,omitempty"` // in tokens; 0 = unknown
	WindowFrom    string `json:"window_from,omitempty"`    // where that stands
}

// ToolDef is a tool, or an action of the kernel's own, as it was offered to the model, with the keys of vfs.Tool.
type ToolDef struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Path        string          `json:"path,omitempty"` // empty: an action of the process itself, such as plan
	Op          string          `json:"op,omitempty"`
	Effect      string          `json:"effect"`
	Independent bool            `json:"independent"`
}

// Checkpoint is checkpoint.json: a cache of what folding the records up to Seq gives. One with a Seq
// that the journal does not reach is of a future that was lost, and is to be ignored.
type Checkpoint struct {
	V        int               `json:"v"`
	UUID     types.UUID        `json:"uuid"`
	Time     time.Time         `json:"time"`
	Seq      uint64            `json:"seq"`      // last record folded in
	Step     int               `json:"step"`     // last step ended
	Messages []rnixctx.Message `json:"messages"` // the conversation
	Tokens   int               `json:"tokens_used"`
	CostUSD  float64           `json:"cost_usd,omitempty"`
	Began    time.Time         `json:"began,omitzero"`  // since when it runs; zero = it does not
	State    json.RawMessage   `json:"state,omitempty"` // everything else that recovery needs
}

// Of reports whether the checkpoint covers records that h has. If not, it is to be ignored.
func (c *Checkpoint) Of(h *History) bool { return c.UUID == h.UUID && c.Seq < h.Next }

func writeInfo(fsys durable.FS, dir string, p *ProcInfo, class durable.Class) error {
	c := *p
	c.V = FormatVersion
	return writeJSON(fsys, dir, InfoFile, &c, class)
}

// ReadInfo reads proc-info.json.
func ReadInfo(fsys durable.FS, dir string) (*ProcInfo, error) {
	return readJSON[ProcInfo](fsys, dir, InfoFile)
}

// WriteMeta writes process-meta.json.
func WriteMeta(fsys durable.FS, dir string, m *Meta) error {
	c := *m
	c.V = FormatVersion
	return writeJSON(fsys, dir, MetaFile, &c, durable.Cached)
}

// ReadMeta reads process-meta.json.
func ReadMeta(fsys durable.FS, dir string) (*Meta, error) { return readJSON[Meta](fsys, dir, MetaFile) }

// WriteCheckpoint writes checkpoint.json and keeps the one before.
func WriteCheckpoint(fsys durable.FS, dir string, p *Checkpoint) error {
	c := *p
	c.V = FormatVersion
	err := fsys.Rename(filepath.Join(dir, CheckpointFile), filepath.Join(dir, previousCheckpoint))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Write", filepath.Join(dir, previousCheckpoint), "%w", err)
	}
	b, err := marshal(&c)
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Write", filepath.Join(dir, CheckpointFile), "%w", err)
	}
	return writeSmall(fsys, dir, CheckpointFile, seal(b), durable.Cached)
}

// ReadCheckpoint reads checkpoint.json or, if that cannot be read or its sum is wrong, the one before. Early versions wrote no sum: theirs
// are taken for damaged, and made again.
func ReadCheckpoint(fsys durable.FS, dir string) (*Checkpoint, error) {
	c, err := readCheckpoint(fsys, dir, CheckpointFile)
	if err != nil {
		if older, perr := readCheckpoint(fsys, dir, previousCheckpoint); perr == nil {
			return older, nil
		}
	}
	return c, err
}

// checkpointSeq returns the Seq of checkpoint.json, of which only the beginning is read if it is as this
// program writes it.
func checkpointSeq(fsys durable.FS, dir string) (uint64, error) {
	f, err := fsys.OpenFile(filepath.Join(dir, CheckpointFile), os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var head [256]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return 0, err
	}
	s, c := scanner{lexer: lexer{text: string(head[:n])}}, new(Checkpoint)
	if members := s.object(); s.checkpointHead(&members, c) && c.V == FormatVersion {
		return c.Seq, nil
	}
	if c, err = readJSON[Checkpoint](fsys, dir, CheckpointFile); err != nil {
		return 0, err
	}
	return c.Seq, nil
}

func readCheckpoint(fsys durable.FS, dir, name string) (*Checkpoint, error) {
	path := filepath.Join(dir, name)
	b, err := durable.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	b, whole := unseal(b)
	if !whole {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "damaged: its sum is wrong, or it has none")
	}
	c := new(Checkpoint)
	if new(scanner).checkpoint(string(b), c) && 1 <= c.V && c.V <= FormatVersion {
		return c, nil
	}
	return parseJSON[Checkpoint](path, b)
}

// writeJSON replaces a small file. All of them can be rebuilt (class D2), so most are not synced.
func writeJSON(fsys durable.FS, dir, name string, v any, class durable.Class) error {
	path := filepath.Join(dir, name)
	b, err := marshal(v)
	if err != nil {
		return types.Errorf(types.ErrInvalid, "Write", path, "%w", err)
	}
	return writeSmall(fsys, dir, name, b, class)
}

// writeSmall replaces a small file, and makes its directory if it is missing.
func writeSmall(fsys durable.FS, dir, name string, b []byte, class durable.Class) error {
	path := filepath.Join(dir, name)
	err := durable.WriteFile(fsys, path, b, class)
	if types.CodeOf(err) == types.ErrNotFound {
		if fsys.Mkdir(dir, durable.DirPerm) == nil {
			err = durable.WriteFile(fsys, path, b, class)
		}
	}
	return err
}

// marshal returns v as a line of JSON. What the model and its provider wrote stays as they wrote it: json.Marshal
// would write < as \u003c, and a prompt that is built from that is another one.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// readJSON reads a small file. A missing one is NOT_FOUND, a damaged one STORAGE, one of a newer
// program VERSION.
func readJSON[T any](fsys durable.FS, dir, name string) (*T, error) {
	path := filepath.Join(dir, name)
	b, err := durable.ReadFile(fsys, path)
	if err != nil {
		return nil, err
	}
	return parseJSON[T](path, b)
}

// parseJSON is readJSON for the bytes of a file.
func parseJSON[T any](path string, b []byte) (*T, error) {
	return parseVersioned[T](path, b, FormatVersion)
}

// parseVersioned is parseJSON for a file whose newest version is another one.
func parseVersioned[T any](path string, b []byte, newest int) (*T, error) {
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "damaged (%d bytes): %w", len(b), err)
	}
	if version.V > newest {
		return nil, types.Errorf(types.ErrVersion, "Read", path, "written in format %d by a newer program, this one reads up to %d", version.V, newest)
	}
	v := new(T)
	if err := json.Unmarshal(b, v); err != nil {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "damaged: %w", err)
	}
	if version.V < 1 {
		return nil, types.Errorf(types.ErrStorage, "Read", path, "damaged: it has no version")
	}
	return v, nil
}
