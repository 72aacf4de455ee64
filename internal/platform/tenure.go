package platform

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/runtime/heartbeat"
	"rnix/types"
)

// tenureFile lies beside the journal of a session. Part of the on-disk format.
const tenureFile = "tenure.json"

const tenureVersion = 1

// tenure is under which fencing token the session was ours last. How a session stands is its last owner's to say: what an
// earlier one did is told, how it ended is not. Part of the on-disk format.
type tenure struct {
	V     int    `json:"v"`
	Token uint64 `json:"token"`           // ours or, with Asked, the one that was in force then
	Asked bool   `json:"asked,omitempty"` // the session was about to be claimed again, to tell what was left
	Stale bool   `json:"stale,omitempty"` // somebody else has had it since
}

// again says what becomes of a tenure when the session is about to be claimed again: seen is who has it, or had it last.
// It also reports whether that is us: workers can share a name, so it alone says nothing.
func (t tenure) again(worker string, seen heartbeat.Lease) (next tenure, ours bool) {
	ours = t.Token == 0 && seen.Owner == worker || t.Token != 0 && seen.FencingToken == t.Token || // 0: nobody has noted it
		t.Asked && seen.FencingToken == t.Token+1 && seen.Owner == worker // a claim of ours whose answer was lost
	return tenure{V: tenureVersion, Token: seen.FencingToken, Asked: true, Stale: t.Stale || !ours && t.Token != 0}, ours
}

// claimed says what becomes of a tenure when the session is ours again under a token.
func (t tenure) claimed(token uint64) tenure {
	return tenure{V: tenureVersion, Token: token, Stale: t.Stale || t.Asked && token != t.Token+1}
}

func (c *Config) tenure() (t tenure, err error) {
	path := filepath.Join(c.Dir, tenureFile)
	b, err := durable.ReadFile(durable.OS, path)
	switch {
	case errors.Is(err, types.ErrNotFound):
		return tenure{}, nil
	case err != nil:
		return tenure{}, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return tenure{}, types.Errorf(types.ErrStorage, "Open", path, "is damaged: %w; remove it, and what is left of the session is told as that of its last owner", err)
	}
	if t.V > tenureVersion {
		return tenure{}, types.Errorf(types.ErrVersion, "Open", path, "has format version %d, this program reads up to %d: use the newer program", t.V, tenureVersion)
	}
	return t, nil
}

func (c *Config) note(t tenure) error {
	b, err := json.Marshal(t)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Save", c.Dir, "%w", err)
	}
	return durable.WriteFile(durable.OS, filepath.Join(c.Dir, tenureFile), append(b, '\n'), durable.Durable)
}

// look finds out, before a session is claimed again, whether somebody else has had it. CONFLICT, with
// heartbeat.ErrLostOwnership in the chain, if somebody has.
func (c *Config) look(ctx context.Context) (tenure, error) {
	t, err := c.tenure()
	if err != nil {
		return t, err
	}
	seen, err := heartbeat.Look(ctx, heartbeat.Config{SessionID: c.SessionID, WorkerID: c.WorkerID, BaseURL: c.URL, AuthToken: c.Token, Logger: c.Log})
	switch {
	case errors.Is(err, types.ErrNotFound): // a platform that does not say
		return t, nil
	case err != nil:
		return t, err
	}
	t, ours := t.again(c.WorkerID, seen)
	if seen.TTL > 0 && !ours {
		err = types.Errorf(types.ErrConflict, "Claim", c.SessionID, "%w: %q has it", heartbeat.ErrLostOwnership, seen.Owner)
	}
	return t, errors.Join(err, c.note(t))
}
