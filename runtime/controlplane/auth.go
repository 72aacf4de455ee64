package controlplane

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/types"
)

// minToken is how long a token is at least, in bytes: what is shorter could be guessed.
const minToken = 16

// AddToken makes a token one that is accepted, now and after a restart. Only its hash is kept.
// It is not called side by side with itself.
func (s *Server) AddToken(token string) error {
	if len(token) < minToken || len(token) > 4096 || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return types.Errorf(types.ErrInvalid, "AddToken", "", "a token has at least %d printable characters and no blanks", minToken)
	}
	sum := sha256.Sum256([]byte(token))
	s.mu.Lock()
	if slices.Contains(s.tokens, sum) {
		s.mu.Unlock()
		return nil
	}
	all := append(slices.Clone(s.tokens), sum)
	s.mu.Unlock()
	doc := tokensDoc{V: fileVersion}
	for _, t := range all {
		doc.SHA256 = append(doc.SHA256, hex.EncodeToString(t[:]))
	}
	if err := s.write(filepath.Join(s.opt.Dir, tokensFile), doc); err != nil {
		return err
	}
	s.mu.Lock()
	s.tokens = all
	s.mu.Unlock()
	return nil
}

// authorized checks the bearer token, in a time that says nothing of how much of it is right.
func (s *Server) authorized(r *http.Request) error {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	s.mu.Lock()
	tokens := s.tokens
	s.mu.Unlock()
	ok := 0
	for _, t := range tokens {
		ok |= subtle.ConstantTimeCompare(t[:], sum[:])
	}
	if ok != 1 || !strings.EqualFold(scheme, "Bearer") {
		return types.Errorf(types.ErrAuth, "Authorize", "", "send the token of this control plane: Authorization: Bearer <token>")
	}
	return nil
}

// TokenFile reads the token of a file that is for its owner alone, or makes one with a new token. PERMISSION if others could
// read it.
func TokenFile(path string) (token string, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		var b [32]byte
		rand.Read(b[:])
		token = hex.EncodeToString(b[:])
		if err := durable.MkdirAll(durable.OS, filepath.Dir(path)); err != nil {
			return "", err
		}
		return token, durable.WriteFile(durable.OS, path, []byte(token+"\n"), durable.Durable)
	}
	switch {
	case err != nil:
		return "", types.Errorf(types.ErrPermission, "TokenFile", path, "%w", err)
	case !info.Mode().IsRegular() || info.Size() > 8192:
		return "", types.Errorf(types.ErrInvalid, "TokenFile", path, "is no file with a token")
	case info.Mode().Perm()&0o077 != 0:
		return "", types.Errorf(types.ErrPermission, "TokenFile", path, "others can read it (mode %04o); close it with: chmod 600 %s", info.Mode().Perm(), path)
	}
	b, err := durable.ReadFile(durable.OS, path)
	if err != nil {
		return "", err
	}
	if token = strings.TrimSpace(string(b)); len(token) < minToken {
		return "", types.Errorf(types.ErrInvalid, "TokenFile", path, "holds no token of at least %d characters; remove it, and a new one is made", minToken)
	}
	return token, nil
}
