package media

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Read reads an image or a PDF that a person names, and checks it; see Check. It does not wait for what is no regular file. Its errors name
// the path.
func Read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readAll(f)
	if err == nil {
		_, err = Check(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot be attached: %w", path, err)
	}
	return data, nil
}

func readAll(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case st.IsDir():
		return nil, errors.New("it is a directory")
	case !st.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case st.Size() > MaxBytes:
		head := make([]byte, SniffLen)
		n, _ := io.ReadFull(f, head) // of nothing, too
		return nil, TooLarge(Type(head[:n]), st.Size())
	}
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}
