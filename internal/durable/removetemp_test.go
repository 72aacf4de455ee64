package durable_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/durable"
)

// finishing is a directory in which a file that is being written gets its name just when it is looked at.
type finishing struct {
	durable.FS
	to string
}

func (f finishing) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.FS.ReadDir(name)
	for _, e := range entries {
		if rerr := f.Rename(filepath.Join(name, e.Name()), f.to); rerr != nil {
			return nil, rerr
		}
	}
	return entries, err
}

// A small file that is just being written does not keep a history from being taken.
func TestFileThatGetsItsNameMeanwhileIsNoLeftover(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".checkpoint.json.1.tmp~"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "checkpoint.json")
	if err := durable.RemoveTemp(finishing{durable.OS, to}, dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(to); err != nil {
		t.Error(err)
	}
}
