//go:build !linux

package fs

import "os"

// ofKernel reports false: other systems serve no files like those of procfs.
func ofKernel(*os.File) bool { return false }
