package llm

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"
)

// scriptKey is what makes two scripts the same: where they stand, which their errors say, and what they say.
type scriptKey struct {
	path string
	text [sha256.Size]byte
}

// scripts are the scripts that somebody plays: a thousand agents of one script keep it once. Nothing is kept of a script that is played
// no more, and one that was edited is another.
var scripts = struct {
	mu   sync.Mutex
	read map[scriptKey]weak.Pointer[replayScript] // +checklocks:mu
}{read: map[scriptKey]weak.Pointer[replayScript]{}}

// sharedScript reads a script, unless somebody plays the same one. Nothing in it changes after that.
func sharedScript(path string, src []byte) (*replayScript, error) {
	key := scriptKey{path, sha256.Sum256(src)}
	if s := knownScript(key); s != nil {
		return s, nil
	}
	s, err := parseReplay(path, src)
	if err != nil {
		return nil, err
	}
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	if other := scripts.read[key].Value(); other != nil { // somebody was quicker
		return other, nil
	}
	scripts.read[key] = weak.Make(s)
	runtime.AddCleanup(s, forgetScript, key)
	return s, nil
}

func knownScript(key scriptKey) *replayScript {
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	return scripts.read[key].Value()
}

// forgetScript forgets a script that is played no more.
func forgetScript(key scriptKey) {
	scripts.mu.Lock()
	defer scripts.mu.Unlock()
	if scripts.read[key].Value() == nil { // else it was read again meanwhile
		delete(scripts.read, key)
	}
}
