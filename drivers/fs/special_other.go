//go:build !linux

package fs

import "os"

// ofKernel reports false: other systems serve no files like those of procfs.
func ofKernel(*os.File) bool { return false }

// nameOf returns "": other systems do not say where an open file is.
func nameOf(*os.File) string { return "" }
