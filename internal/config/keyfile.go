package config

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// maxKey is the longest key file in bytes.
const maxKey = 16 << 10

// ReadKey reads the key of a provider from a file: all of it, without white space around. The file must be a plain one that its owner alone can read, as
// ssh wants it of keys; its owner is who runs this program, or root. What is wrong is said without any of its content.
func ReadKey(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", fmt.Errorf("the key file cannot be read: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", fmt.Errorf("the key file cannot be read: %w", err)
	}
	st, _ := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.Mode().IsRegular():
		return "", fmt.Errorf("the key file %s is not a file", path)
	case fi.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can read the key file %s; run: chmod 600 %s", path, path)
	case st != nil && st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return "", fmt.Errorf("the key file %s belongs to another user", path)
	case fi.Size() > maxKey:
		return "", fmt.Errorf("the key file %s has %d bytes, and a key has at most %d", path, fi.Size(), maxKey)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxKey))
	if err != nil {
		return "", fmt.Errorf("the key file cannot be read: %w", err)
	}
	key := strings.TrimSpace(string(b))
	switch {
	case key == "":
		return "", fmt.Errorf("the key file %s is empty", path)
	case strings.ContainsAny(key, "\r\n\x00"):
		return "", fmt.Errorf("the key file %s has several lines; it must hold the key alone", path)
	}
	return key, nil
}

// Keyed looks up variables as lookup does, and beside that the keys that are in files of providers, under the names of their variables. A variable that is set
// comes first. A file is read each time, so that a key can be changed; learn is told each key before it is used, as it must not be shown.
func Keyed(lookup Lookup, providers []Provider, learn func(name, key string)) Lookup {
	return func(name string) (string, bool) {
		v, ok := lookup(name)
		if ok && v != "" {
			return v, true
		}
		for i := range providers {
			p := &providers[i]
			if p.APIKeyFile == "" || p.APIKeyEnv != name {
				continue
			}
			if key, err := ReadKey(p.APIKeyFile); err == nil {
				learn(name, key)
				return key, true
			}
		}
		return v, ok
	}
}
