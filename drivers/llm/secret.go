package llm

import (
	"context"
	"os"

	"rnix/vfs"
)

type callerKey struct{}

// WithCaller returns a context that carries who asks. The device sets it for every call.
func WithCaller(ctx context.Context, c vfs.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns who asks, or the zero Caller if nobody said.
func CallerFrom(ctx context.Context) vfs.Caller {
	c, _ := ctx.Value(callerKey{}).(vfs.Caller)
	return c
}

// SecretFrom looks up a credential by the name of its variable: first in the environment that the
// asking process was started from, then in our own. An empty value counts as absent. The caller keeps
// it out of errors, events and descriptions.
func SecretFrom(ctx context.Context, name string) (string, bool) {
	if look := CallerFrom(ctx).Secret; look != nil {
		if v, ok := look(name); ok && v != "" {
			return v, true
		}
	}
	v := os.Getenv(name)
	return v, v != ""
}
