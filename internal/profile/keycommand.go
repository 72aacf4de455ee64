package profile

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/runtime/env"
	"rnix/types"
)

const (
	keyTime   = 10 * time.Second // within which a key command must have answered: a keyring may ask a person, but a model call waits meanwhile
	keyAgain  = 10 * time.Second // how long it is not run again after it has failed
	maxOutput = 16 << 10         // of its output in bytes, as of a key file
)

// KeyCommands runs the commands that print keys of providers, and keeps each key for the time that its provider says. Safe for concurrent use.
type KeyCommands struct {
	Start KeyStarter
	Dir   string                         // in which they run
	Told  func(text string, args ...any) // of each failure; it holds nothing that a command has printed

	mu sync.Mutex
	// +checklocks:mu
	known map[string]*printed // by the command and the variable of its key
}

// KeyStarter starts OS processes. *proc.Manager is one.
type KeyStarter interface {
	Start(ctx context.Context, spec proc.Spec) (*proc.Child, error)
}

// printed is what a command has printed.
type printed struct {
	running sync.Mutex // held while it runs, so that many who need it at once run it once

	mu    sync.Mutex
	key   string    // +checklocks:mu
	err   error     // +checklocks:mu
	until time.Time // +checklocks:mu
	// refused is the key that a server has refused last; it runs for no refusal before next.
	refused string    // +checklocks:mu
	next    time.Time // +checklocks:mu
	// When it has brought a key last that is not refused, or a person wanted it to be asked again.
	moved time.Time // +checklocks:mu
}

// Key returns the key of a provider that has a command for it, which runs as the user, in no sandbox, with an environment.
func (k *KeyCommands) Key(p *config.Provider, environ []string) (string, error) {
	one := k.of(p)
	one.running.Lock()
	defer one.running.Unlock()
	if key, fresh, err := one.now(); fresh {
		return key, err
	}
	key, err := k.run(p, environ)
	one.put(key, err, p.APIKeyTTL)
	if err != nil && k.Told != nil {
		k.Told("a key command has failed", "err", err)
	}
	return key, err
}

// Failed returns why the command of a provider has brought no key; nil = it has, or was not run lately.
func (k *KeyCommands) Failed(p *config.Provider) error {
	if k == nil {
		return nil
	}
	_, fresh, err := k.of(p).now()
	if !fresh {
		return nil
	}
	return err
}

func (k *KeyCommands) of(p *config.Provider) *printed {
	return k.named(commandOf(p))
}

// commandOf names the command of a provider, with the key that it prints.
func commandOf(p *config.Provider) string {
	return p.APIKeyEnv + "\x00" + strings.Join(p.APIKeyCommand, "\x00")
}

func (k *KeyCommands) named(name string) *printed {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[string]*printed{}
	}
	one := k.known[name]
	if one == nil {
		one = &printed{}
		k.known[name] = one
	}
	return one
}

func (o *printed) now() (key string, fresh bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.key, time.Now().Before(o.until), o.err
}

func (o *printed) put(key string, err error, ttl time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil || key == o.refused {
		ttl = keyAgain
	}
	now := time.Now()
	o.key, o.err, o.until = key, err, now.Add(ttl)
	switch {
	case err != nil:
	case key == o.refused:
		o.next = o.until
	case !now.Before(o.next): // else it was asked again for a refusal, and may print one after the other that is refused
		o.moved = now
	}
}

// Refused is told that a server has refused a key that the command of a provider has printed: it is not used again before the command was asked once more.
// again says that another may be had at once; that is false for a while if the command has been asked for that lately, or prints the same one.
func (k *KeyCommands) Refused(p *config.Provider, key string) (again bool) {
	if k == nil {
		return false
	}
	return k.of(p).refuse(key, time.Now())
}

func (o *printed) refuse(key string, now time.Time) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.key != key { // another has come meanwhile
		return o.key != "" && o.key != o.refused
	}
	// Whoever is refused the same key while the command is still to be asked for another one waits for that, too.
	again = o.refused == key && !o.until.After(now)
	if !now.Before(o.next) {
		again, o.until, o.next = true, now, now.Add(keyAgain)
	}
	if o.refused = key; o.until.After(o.next) {
		o.until = o.next
	}
	return again
}

// Anew has commands that have failed, or whose key was refused, asked again when a key is needed next: a person wants it.
func (k *KeyCommands) Anew() {
	k.mu.Lock()
	all := slices.Collect(maps.Values(k.known))
	k.mu.Unlock()
	for _, one := range all {
		one.mu.Lock()
		if one.err != nil || one.key == one.refused {
			one.until, one.next, one.moved, one.refused = time.Time{}, time.Time{}, time.Now(), ""
		}
		one.mu.Unlock()
	}
}

// Good reports whether the command of a provider brings a key that no server has refused. It runs if its key is not known.
func (k *KeyCommands) Good(p *config.Provider, environ []string) bool {
	key, err := k.Key(p, environ)
	if err != nil {
		return false
	}
	one := k.of(p)
	one.mu.Lock()
	defer one.mu.Unlock()
	return key != one.refused
}

func (k *KeyCommands) run(p *config.Provider, environ []string) (string, error) {
	argv := p.APIKeyCommand
	fail := func(format string, args ...any) (string, error) {
		return "", fmt.Errorf("api_key_command of %s: "+format, append([]any{p.Name}, args...)...)
	}
	path, err := keyProgram(argv[0], environ)
	if err != nil {
		return fail("%w", err)
	}
	var out capped
	child, err := k.Start.Start(context.Background(), proc.Spec{Kind: proc.KindKey, Path: path, Args: argv[1:], Shown: argv[0] + " (api_key_command)", Dir: k.Dir, Stdout: &out, Timeout: keyTime, Env: environ, Credentials: ways(os.Environ()),
		Box: &proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}}})
	if types.CodeOf(err) == types.ErrNotFound {
		return fail("there is no program %s", argv[0])
	}
	if err != nil {
		return fail("%w", err)
	}
	end := child.Wait()
	key := strings.TrimSpace(out.buf.String())
	switch {
	case end.Cause == proc.TimedOut:
		return fail("%s has not answered within %s", argv[0], keyTime)
	case end.Err != nil:
		return fail("%w", end.Err)
	case end.Code != 0 || end.Signal != 0:
		return fail("%s exited with %d; run it in a terminal to see why", argv[0], end.Code)
	case out.over:
		return fail("%s has printed more than %d bytes", argv[0], maxOutput)
	case key == "":
		return fail("%s has printed nothing", argv[0])
	case strings.ContainsAny(key, "\r\n\x00"):
		return fail("%s has printed several lines; it must print the key alone", argv[0])
	}
	return key, nil
}

// ways returns what of the daemon's own environment leads to secrets: the bus of a keyring, the socket of an agent, the settings and logins of clouds. They are
// the daemon's own, whoever asks: a client, which can be an agent, could name a keyring or a configuration of its own, which a program of the user obeys.
func ways(environ []string) (out []string) {
	for _, kv := range environ {
		if name, _, ok := strings.Cut(kv, "="); ok && env.Blocked(name) && !env.RunsCode(name) && !env.IsRunnerOnly(name) {
			out = append(out, kv)
		}
	}
	return out
}

// systemDirs are where the system's own programs are, in which no project and no agent installs any.
var systemDirs = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/snap/bin", "/opt/homebrew/bin", "/usr/pkg/bin",
	"/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin"}

// keyProgram returns the path of a key command's program. A bare name is looked up in the directories of PATH that are the system's: another one, such as that
// of a virtual environment in a project, may be written by commands of agents, which would run as the user, in no sandbox.
func keyProgram(name string, environ []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := ""
	for _, kv := range environ {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = v
		}
	}
	own := slices.DeleteFunc(filepath.SplitList(search), func(dir string) bool { return !slices.Contains(systemDirs, filepath.Clean(dir)) })
	path, err := proc.LookPath(name, []string{"PATH=" + strings.Join(own, string(filepath.ListSeparator))})
	if err == nil {
		return path, nil
	}
	if other, oerr := proc.LookPath(name, environ); oerr == nil {
		return "", fmt.Errorf("%s is only in %s, where others may have put it; write its whole path if that is the one", name, filepath.Dir(other))
	}
	return "", fmt.Errorf("%s is not in PATH; install it, or write its whole path", name)
}

// capped keeps the first maxOutput bytes that are written to it.
type capped struct {
	buf  bytes.Buffer // not embedded: it would be read into without the bound
	over bool
}

func (c *capped) Write(b []byte) (int, error) {
	room := maxOutput - c.buf.Len()
	if len(b) > room {
		c.over = true
		c.buf.Write(b[:room])
		return len(b), nil
	}
	return c.buf.Write(b)
}

// Secret returns what looks up a variable as the Lookup of a profile does, and beside that the keys that commands of providers print, of which Lookup runs
// none: they are run when a key is needed, and not whenever the configuration is read.
func Secret(p *Profile) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := p.Lookup(name); ok && v != "" {
			return v, true
		}
		return printedKey(p, name)
	}
}

// printedKey returns the key of a name that the command of a provider prints.
func printedKey(p *Profile, name string) (string, bool) {
	pr := printerOf(p, name)
	if pr == nil {
		return "", false
	}
	environ := p.Env
	if p.Lent != nil { // an agent has started it: what leads to keys is not its to say
		environ = os.Environ()
	}
	key, err := p.keys.Key(pr, environ)
	if err != nil {
		return "", false
	}
	p.learn(name, key)
	return key, true
}

// printerOf returns the provider, or the search engine, whose command prints the key of a name; nil = none does.
func printerOf(p *Profile, name string) *config.Provider {
	for _, pr := range keyed(p) {
		if len(pr.APIKeyCommand) > 0 && pr.APIKeyEnv == name && p.keys != nil {
			return &pr
		}
	}
	return nil
}

// KeyRefused is told that a server has refused a key of p. later says that another can come, of a command; again that it may be there now.
func KeyRefused(p *Profile, name, key string) (again, later bool) {
	if v, ok := p.Lookup(name); ok && v != "" {
		return strings.TrimSpace(v) != key, false // the file has another one by now
	}
	pr := printerOf(p, name)
	if pr == nil {
		return false, false
	}
	return p.keys.Refused(pr, key), true
}
