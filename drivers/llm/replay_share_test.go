package llm

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// The script of a replayed model is kept once, however many play it, and not at all when all are gone.
func TestAScriptIsKeptOnceHoweverManyPlayIt(t *testing.T) {
	src := fmt.Appendf(nil, "version: \"1\"\nresponses:\n  - {content: %q}\n", strings.Repeat("long ", 1000))
	var players []*ReplayDriver
	for range 100 {
		d, err := ParseReplay("p", "shared.yaml", src)
		if err != nil {
			t.Fatal(err)
		}
		players = append(players, d)
	}
	for _, d := range players {
		if d.script != players[0].script {
			t.Fatal("two have read it")
		}
	}
	edited, err := ParseReplay("p", "shared.yaml", []byte(strings.Replace(string(src), "long", "new", 1)))
	if err != nil || edited.script == players[0].script {
		t.Errorf("an edited script is the old one, %v", err)
	}
	kept := func() int {
		scripts.mu.Lock()
		defer scripts.mu.Unlock()
		n := 0
		for k := range scripts.read {
			if k.path == "shared.yaml" {
				n++
			}
		}
		return n
	}
	if n := kept(); n != 2 {
		t.Errorf("%d are kept", n)
	}
	runtime.KeepAlive(players)
	runtime.KeepAlive(edited)
	clear(players)
	edited = nil
	for tries := 0; kept() > 0; tries++ { // cleanups run some time after a collection
		if tries == 1000 {
			t.Fatalf("%d are kept when all are gone", kept())
		}
		runtime.GC()
		runtime.Gosched()
	}
	_ = edited
}
