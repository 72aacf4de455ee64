package llm

import (
	"context"
	"crypto/sha256"
	"sync"
)

// Limits is what is known of the rate limits of accounts: of a provider with a key. All calls that share it wait for the same limit, whatever
// else their drivers are told. The zero value knows of none. Safe for concurrent use.
type Limits struct {
	mu sync.Mutex
	// +checklocks:mu
	by map[account]*limit
}

// account is who is limited. The key itself is not kept.
type account struct {
	provider string
	key      [sha256.Size]byte
}

// maxAccounts is how many accounts are known before those are forgotten that have no limit: keys can be made anew each hour.
const maxAccounts = 256

// of returns the limit of a provider with the key that a call has under a name; "" = it needs none.
func (l *Limits) of(ctx context.Context, provider, keyEnv string) *limit {
	a := account{provider: provider}
	if key, ok := SecretFrom(ctx, keyEnv); keyEnv != "" && ok {
		a.key = sha256.Sum256([]byte(key))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.by[a]; known != nil {
		return known
	}
	if l.by == nil {
		l.by = map[account]*limit{}
	}
	if len(l.by) >= maxAccounts {
		for other, known := range l.by {
			if known.none() {
				delete(l.by, other)
			}
		}
	}
	l.by[a] = &limit{}
	return l.by[a]
}

// none reports whether there is no limit.
func (l *limit) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until.IsZero() && !l.probing
}
