package step

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/internal/durable"
	"rnix/types"
)

// Bounds of what is handed to a process with its intent.
const (
	MaxInput  = 16 << 20 // bytes of one input
	MaxInputs = 64 << 20 // bytes of all inputs of a process

	MaxInputCount = 1024 // inputs of a process
	maxInputName  = 64
	maxBroken     = 200 // bytes of why an input is broken off
)

// PipeInput is the name of the input that comes out of a pipe.
const PipeInput = "pipe"

// inputsDir is the directory of a history in which its inputs lie. Part of the on-disk format.
const inputsDir = "inputs"

// Input is data that a process is given with its intent: what came before it in a pipe, or what the
// processes brought on which it depends. Part of the wire format.
type Input struct {
	Name string `json:"name"` // 1 to 64 of A-Z a-z 0-9 . _ -
	Text string `json:"text"` // UTF-8 without NUL
	// Broken says why the text may not be all that was to come, in a few words on one line; empty = it is.
	Broken string `json:"broken,omitempty"`
}

// InputRef says what an input was, so that damage to its file is found. Part of the on-disk format.
type InputRef struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // in hexadecimal
	Broken string `json:"broken,omitempty"`
}

// Ref returns the reference to an input.
func (in *Input) Ref() InputRef {
	sum := sha256.Sum256([]byte(in.Text))
	return InputRef{Name: in.Name, Bytes: int64(len(in.Text)), SHA256: hex.EncodeToString(sum[:]), Broken: in.Broken}
}

// CheckInputs refuses, as INVALID, inputs that cannot be kept or shown: a name that is none or is there
// twice, a text that is no text, and too much.
func CheckInputs(inputs []Input) error {
	invalid := func(name, format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Spawn", "input "+name, format, args...)
	}
	if len(inputs) > MaxInputCount {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "%d inputs were given and at most %d are taken", len(inputs), MaxInputCount)
	}
	all, names := 0, make(map[string]bool, len(inputs))
	for _, in := range inputs {
		all += len(in.Text)
		switch {
		case !InputName(in.Name):
			return types.Errorf(types.ErrInvalid, "Spawn", "", "%.100q is no name for an input: use 1 to %d letters, digits, dots, underscores and dashes, and not only dots", in.Name, maxInputName)
		case names[in.Name]:
			return invalid(in.Name, "it is given twice: give each input its own name")
		case len(in.Text) > MaxInput:
			return invalid(in.Name, "it has %d bytes and at most %d are taken: put it into a file and tell the agent to read that", len(in.Text), MaxInput)
		case !utf8.ValidString(in.Text) || strings.IndexByte(in.Text, 0) >= 0:
			return invalid(in.Name, "it is not text in UTF-8: put it into a file and tell the agent where that is")
		}
		if len(in.Broken) > maxBroken || !utf8.ValidString(in.Broken) || strings.ContainsFunc(in.Broken, unicode.IsControl) {
			return invalid(in.Name, "why it is broken off has to be one line of at most %d bytes", maxBroken)
		}
		names[in.Name] = true
	}
	if all > MaxInputs {
		return types.Errorf(types.ErrInvalid, "Spawn", "", "the inputs have %d bytes in all and at most %d are taken: put them into files and tell the agent to read those", all, MaxInputs)
	}
	return nil
}

// InputName reports whether an input can have this name.
func InputName(name string) bool {
	if name == "" || len(name) > maxInputName || strings.Trim(name, ".") == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// InputsDir returns where the inputs of a history lie, each as a file under its name; dir is that of the
// history.
func InputsDir(dir string) string { return filepath.Join(dir, inputsDir) }

// InputFile returns the file of an input, from the directory of its history.
func InputFile(name string) string { return inputsDir + "/" + name }

// WriteInputs makes the inputs of a history durable; dir is its directory. It is done before the record
// that names them is written: a crash leaves files that no record names, and no record without its files.
func WriteInputs(fsys durable.FS, dir string, inputs []Input) ([]InputRef, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	dir = InputsDir(dir)
	if err := durable.MkdirAll(fsys, dir); err != nil {
		return nil, err
	}
	refs := make([]InputRef, len(inputs))
	for i := range inputs {
		in := &inputs[i]
		if err := durable.WriteFile(fsys, filepath.Join(dir, in.Name), []byte(in.Text), durable.Durable); err != nil {
			return nil, err
		}
		refs[i] = in.Ref()
	}
	return refs, nil
}

// cleanInputs removes what an interrupted write has left.
func cleanInputs(fsys durable.FS, dir string) error {
	dir = InputsDir(dir)
	if _, err := fsys.Stat(dir); missing(err) {
		return nil
	}
	return durable.RemoveTemp(fsys, dir)
}

// ReadInput reads an input and checks it. It is STORAGE if the file is not what was written.
func ReadInput(fsys durable.FS, dir string, ref InputRef) (string, error) {
	path := filepath.Join(InputsDir(dir), ref.Name)
	b, err := durable.ReadFile(fsys, path)
	if err != nil {
		return "", err
	}
	in := Input{Name: ref.Name, Text: string(b)}
	if got := in.Ref(); got != ref {
		return "", types.Errorf(types.ErrStorage, "Read", path, "damaged: %d bytes with the SHA-256 %.12s…, and %d bytes with %.12s… were written", got.Bytes, got.SHA256, ref.Bytes, ref.SHA256)
	}
	return in.Text, nil
}

// CopyInputs makes the inputs of one history durable for another; the arguments are their directories.
// What cannot be read is left out: damage says what, "" = nothing.
func CopyInputs(fsys durable.FS, from, to string, refs []InputRef) (damage string, err error) {
	for _, ref := range refs {
		text, rerr := ReadInput(fsys, from, ref)
		if rerr != nil {
			damage = "the input " + ref.Name + " could not be copied: " + rerr.Error()
			continue
		}
		if _, err := WriteInputs(fsys, to, []Input{{Name: ref.Name, Text: text}}); err != nil {
			return damage, err
		}
	}
	return damage, nil
}
