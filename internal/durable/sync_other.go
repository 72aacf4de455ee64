//go:build !linux

package durable

import "os"

func datasync(f *os.File) error { return f.Sync() }
