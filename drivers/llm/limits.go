package llm

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
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
	model    string // empty = that of all models
	key      [sha256.Size]byte
}

// maxAccounts is how many accounts are known before those are forgotten that have no limit: keys can be made anew each hour.
const maxAccounts = 512

// of returns the limit of a model of a provider with the key that a call has under a name; "" = it needs none. Without a model it is that of the account.
func (l *Limits) of(ctx context.Context, provider, model, keyEnv string) *limit {
	a := account{provider: provider, model: model}
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

// none reports whether there is no limit, or none any more.
func (l *limit) none() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.probing && !time.Now().Before(l.until)
}

// limitsOf are the two limits that a call can meet.
type limitsOf struct {
	model, account *limit
	// This try finds out whether the one or the other is over.
	probesModel, probesAccount bool
}

// admit is limit.admit of both. That of the model is waited for first: who has to wait for it holds nobody of another model.
func (l *limitsOf) admit(ctx context.Context, latest time.Time, emit func(StreamEvent)) (err error) {
	if l.probesModel, err = l.model.admit(ctx, latest, emit); err != nil {
		return err
	}
	if l.probesAccount, err = l.account.admit(ctx, latest, emit); err != nil {
		l.passed(false)
	}
	return err
}

// hit notes that a call met one of them, which is to last until then. The other one has let it pass.
func (l *limitsOf) hit(ofAccount bool, until time.Time) {
	met, other, probes, passes := l.model, l.account, l.probesModel, l.probesAccount
	if ofAccount {
		met, other, probes, passes = other, met, passes, probes
	}
	met.hit(probes, until)
	other.passed(passes, !ofAccount) // behind that of the account nobody has seen the one of the model
	l.probesModel, l.probesAccount = false, false
}

// passed is limit.passed of both, once for each try.
func (l *limitsOf) passed(told bool) {
	l.model.passed(l.probesModel, told)
	l.account.passed(l.probesAccount, told)
	l.probesModel, l.probesAccount = false, false
}
