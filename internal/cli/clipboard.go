package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/media"
	"rnix/internal/proc"
	"rnix/types"
)

// clipboardTime bounds the reading of a clipboard: a program that has an image may never give it.
const clipboardTime = 10 * time.Second

// clipboard returns what writes the image that the clipboard has into a file, and what removes these files. The image is read by the program that the
// desktop has for that: terminals paste text alone.
func clipboard(a *app) (read func(ctx context.Context) (path string, err error), clean func()) {
	dir, n := "", 0
	read = func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, clipboardTime)
		defer cancel()
		if dir == "" {
			tmp, err := os.MkdirTemp("", "rnix-paste-")
			if err != nil {
				return "", err
			}
			dir = tmp
		}
		data, err := clipboardImage(ctx, a, dir)
		if err != nil {
			return "", err
		}
		n++
		path := filepath.Join(dir, fmt.Sprintf("pasted-%d.png", n))
		return path, os.WriteFile(path, data, 0o600)
	}
	return read, func() {
		if dir != "" {
			_ = os.RemoveAll(dir) // what was sent is in the history
		}
	}
}

// clipboardImage reads an image as PNG.
func clipboardImage(ctx context.Context, a *app, dir string) ([]byte, error) {
	var words []string
	switch {
	case a.getenv("WAYLAND_DISPLAY") != "":
		words = []string{"wl-paste", "--type", media.PNG}
	case a.getenv("DISPLAY") != "":
		words = []string{"xclip", "-selection", "clipboard", "-target", media.PNG, "-out"}
	default:
		return nil, errors.New("the clipboard of no desktop can be read (WAYLAND_DISPLAY and DISPLAY are not set); name an image as @FILE")
	}
	m, err := proc.NewManager(dir, nil)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	var out bytes.Buffer
	child, err := m.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: words[0], Args: words[1:], Dir: dir, Env: a.host.Environ, Stdout: bounded{&out}, Stderr: io.Discard})
	if types.CodeOf(err) == types.ErrNotFound {
		return nil, fmt.Errorf("the clipboard is read by %s, which is not installed; name an image as @FILE", words[0])
	} else if err != nil {
		return nil, err
	}
	switch exit := child.Wait(); {
	case exit.Cause == proc.Cancelled:
		return nil, fmt.Errorf("the clipboard did not give its image within %s", clipboardTime)
	case exit.Err != nil:
		return nil, exit.Err
	case exit.Code != 0 || out.Len() == 0:
		return nil, errors.New("there is no image in the clipboard")
	}
	if _, err := media.Check(out.Bytes()); err != nil {
		return nil, fmt.Errorf("the image of the clipboard cannot be attached: %w", err)
	}
	return out.Bytes(), nil
}

// bounded takes no more than any image may have; the rest is thrown away, and the image refused for its size.
type bounded struct{ to *bytes.Buffer }

func (b bounded) Write(p []byte) (int, error) {
	if room := media.MaxBytes + 1 - b.to.Len(); room > 0 {
		b.to.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
