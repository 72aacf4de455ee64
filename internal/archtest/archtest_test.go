package archtest

import (
	"os"
	"path/filepath"
	"testing"
)

// root is the module, from this directory. Every file of it is opened by these tests, so a change of
// any of them runs the tests again.
var root = filepath.Join("..", "..")

// TestTheHouse checks every rule over the whole module.
func TestTheHouse(t *testing.T) {
	found, err := Check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(Rules(), Rule{Name: "exceptions"}) {
		t.Run(r.Name, func(t *testing.T) {
			for _, f := range found[r.Name] {
				t.Error(f)
			}
		})
	}
}
