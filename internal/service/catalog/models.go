package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rnix/drivers/llm"
	"rnix/internal/config"
	"rnix/internal/profile"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// Models serves /dev/llm: one device for all providers, because which providers there are, and with
// what address, depends on the client that started the process. A driver is made once for each
// distinct configuration and shared, with its concurrency gate. Its fields are set before it is used.
type Models struct {
	Drivers Drivers
	Log     *slog.Logger

	limits llm.Limits // of all drivers: two configurations may ask one account

	mu sync.Mutex
	// +checklocks:mu
	drivers map[string]model // by the configuration as JSON
	// +checklocks:mu
	keepers []keeper // the drivers that keep something for a conversation
	// +checklocks:mu
	gates map[string]*gate // by the configuration as JSON, as drivers
}

// gate is where the calls of one configuration of a provider pass.
type gate struct {
	*llm.Gate
	provider string
	from     string // where its limit comes from; empty = there is none
}

// Drivers makes the drivers of providers.
type Drivers interface {
	Make(pr config.Provider) (llm.LLMDriver, error)
	// Metered reports whether the requests that a provider makes for a caller each count by themselves; if not, why no budget can be kept with it, or "".
	Metered(c vfs.Caller, pr config.Provider) (metered bool, why string)
}

// model is a driver with its decorators, in two forms that share one gate.
type model struct {
	patient llm.LLMDriver // waits out rate limits
	hasty   llm.LLMDriver // waits for a short one only: another can answer
}

// hastyWait is the longest rate limit that is waited for when there is a fallback.
const hastyWait = time.Minute

// keeper is a driver that keeps something for each conversation.
type keeper interface {
	CloseSession(session string)
	Close() error
}

// CloseSession ends what the drivers keep for a process.
func (m *Models) CloseSession(id types.UUID) {
	for _, k := range m.all() {
		k.CloseSession(id.String())
	}
}

// Close ends what the drivers keep.
func (m *Models) Close() error {
	var errs []error
	for _, k := range m.all() {
		errs = append(errs, k.Close())
	}
	return errors.Join(errs...)
}

func (m *Models) all() []keeper {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.keepers)
}

// driver returns the driver of a provider as a client has it.
func (m *Models) driver(p *profile.Profile, pr config.Provider) (model, error) {
	key, err := driverKey(p, pr)
	if err != nil {
		return model{}, err
	}
	if pr.Driver == config.DriverReplay { // a script may be edited between two runs, but the calls of all runs are those of one provider
		d, err := m.Drivers.Make(pr)
		if err != nil {
			return model{}, err
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return decorate(m.gateLocked(key, d, p, pr), llm.RetryConfig{}), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if d, ok := m.drivers[key]; ok {
		return d, nil
	}
	d, err := m.Drivers.Make(pr)
	if err != nil {
		return model{}, err
	}
	if k, ok := d.(keeper); ok {
		m.keepers = append(m.keepers, k)
	}
	both := decorate(m.gateLocked(key, d, p, pr), llm.RetryConfig{Limits: &m.limits, Provider: accountOf(&pr), KeyEnv: pr.APIKeyEnv, Refused: refused})
	if m.drivers == nil {
		m.drivers = map[string]model{}
	}
	m.drivers[key] = both
	return both, nil
}

// gateLocked puts the gate of a configuration before a driver.
//
// +checklocks:m.mu
func (m *Models) gateLocked(key string, d llm.LLMDriver, p *profile.Profile, pr config.Provider) *llm.Gate {
	if g := m.gates[key]; g != nil {
		return g.Over(d)
	}
	n, from := atOnce(p, pr)
	if n == 0 {
		n = llm.NoLimit
	}
	if m.gates == nil {
		m.gates = map[string]*gate{}
	}
	g := &gate{llm.NewGate(d, n), pr.Name, from}
	m.gates[key] = g
	return g.Gate
}

// Traffic returns which calls providers run now, and which wait, by the provider.
func (m *Models) Traffic() []ipc.ProviderCalls {
	m.mu.Lock()
	gates := slices.Collect(maps.Values(m.gates))
	m.mu.Unlock()
	out := []ipc.ProviderCalls{}
	for _, g := range gates {
		t := g.Traffic()
		if t.Running+t.Waiting == 0 {
			continue
		}
		c := ipc.ProviderCalls{Provider: g.provider, Running: t.Running, Waiting: t.Waiting, Oldest: t.Oldest, From: g.from}
		if t.Most != llm.NoLimit {
			c.AtOnce = t.Most
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b ipc.ProviderCalls) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), cmp.Compare(a.AtOnce, b.AtOnce), cmp.Compare(b.Running, a.Running))
	})
	return out
}

// refused tells the configuration of who asks that a key is refused.
func refused(ctx context.Context, name, key string) (again, later bool) {
	if p, ok := llm.CallerFrom(ctx).Profile.(*profile.Profile); ok {
		return profile.KeyRefused(p, name, key)
	}
	return false, false
}

// driverKey is what is the same for who shares a driver, and with that the limit of its calls.
func driverKey(p *profile.Profile, pr config.Provider) (string, error) {
	n, _ := atOnce(p, pr)
	b, err := json.Marshal(struct {
		config.Provider
		Concurrency int
	}{pr, n})
	if err != nil {
		return "", types.Errorf(types.ErrInternal, "Open", pr.Name, "%w", err)
	}
	return string(b), nil
}

// atOnce is how many calls a provider gets at once, and where that comes from; 0 = any number, unless its own entry says one: an agent's command line is at
// work for hours in one call, and who waits for that would wait with the answer to its own call; a replay asks nobody.
func atOnce(p *profile.Profile, pr config.Provider) (n int, from string) {
	switch {
	case pr.Concurrency > 0:
		return pr.Concurrency, "concurrency of " + pr.Name + " in " + pr.Source
	case pr.Harness() != "" || pr.Driver == config.DriverReplay:
		return 0, ""
	case p.Config.Concurrency.Origin == config.FromDefault:
		return p.Config.Concurrency.V, config.FromDefault
	}
	return p.Config.Concurrency.V, "concurrency in " + p.Config.Concurrency.Origin
}

// accountOf is what a rate limit of a provider is of, besides its key: where it is asked. Two entries of the configuration for one server share it.
func accountOf(pr *config.Provider) string {
	if pr.BaseURL == "" && pr.APIKeyEnv == "" {
		return pr.Driver + " " + pr.Name
	}
	return pr.Driver + " " + pr.BaseURL
}

// decorate puts the decorators around a driver.
func decorate(gated *llm.Gate, retry llm.RetryConfig) model {
	hasty := retry
	hasty.LimitMax = hastyWait
	return model{patient: llm.NewRetry(gated, retry), hasty: llm.NewRetry(gated, hasty)}
}

// Open makes a file of /dev/llm. It becomes a file of a driver when it learns who opened it.
func (m *Models) Open(subpath string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	return &modelFile{models: m, subpath: subpath, flags: flags}, nil
}

// modelFile is a file of /dev/llm/<provider>[/fallback/<provider>[/<model>]].
type modelFile struct {
	models  *Models
	subpath string
	flags   vfs.OpenFlag
	caller  vfs.Caller
	used    []config.Provider // that may answer
	asked   []string          // the model that each of them is asked for
	vfs.VFSFile
}

// BindCaller finds the driver in the caller's configuration.
func (f *modelFile) BindCaller(c vfs.Caller) error {
	p, ok := c.Profile.(*profile.Profile)
	if !ok {
		return types.Errorf(types.ErrUnavailable, "Open", "", "the caller has no configuration")
	}
	if strings.Trim(f.subpath, "/") == "" {
		list := providerList(p)
		f.VFSFile = vfs.NewTextFile(vfs.FileStat{Name: "llm", Size: int64(len(list)), IsDir: true, Mode: "r--", Type: "dir"}, list)
		return nil
	}
	f.caller = c
	name, rest, _ := strings.Cut(strings.Trim(f.subpath, "/"), "/")
	first, err := f.named(p, name, c.Model)
	if err != nil {
		return err
	}
	d := first.patient
	if rest != "" {
		second, name, _ := strings.Cut(strings.TrimPrefix(rest, "fallback/"), "/")
		if !strings.HasPrefix(rest, "fallback/") || second == "" {
			return types.Errorf(types.ErrNotFound, "Open", "", "a model has no files below it but fallback/<provider>[/<model>]")
		}
		other, err := f.named(p, second, name)
		if err != nil {
			return err
		}
		d = llm.NewFallback(first.hasty, other.patient, name)
	}
	file, err := llm.NewDevice(llm.NewRecord(d, f.models.tell))("", f.flags)
	if err != nil {
		return err
	}
	if b, ok := file.(vfs.CallerBinder); ok {
		if err := b.BindCaller(c); err != nil {
			return err
		}
	}
	f.VFSFile = file
	return nil
}

// tell notes a call of a model, without anything that was said.
func (m *Models) tell(x llm.Exchange) {
	m.Log.Debug("model", "session", x.Session, "provider", x.Provider, "model", x.Model, "messages", x.Messages, "first", x.FirstPiece,
		"waited", x.Waited, "took", x.Total, "tokens", x.Usage.Total(), "stop", x.StopReason, "code", x.Code)
}

// named returns the driver of a provider, which is asked for a model; "" = its default.
func (f *modelFile) named(p *profile.Profile, name, asked string) (model, error) {
	for _, pr := range p.Providers.List {
		if pr.Name == name {
			f.used, f.asked = append(f.used, pr), append(f.asked, cmp.Or(asked, pr.DefaultModel))
			return f.models.driver(p, pr)
		}
	}
	return model{}, types.Errorf(types.ErrNotFound, "Open", "", "no provider %s; `rnix providers` lists them", name)
}

// Close closes the driver's file. There is none if the caller was refused.
func (f *modelFile) Close() error {
	if f.VFSFile == nil {
		return nil
	}
	return f.VFSFile.Close()
}

// ModelCard and NotifyStream pass on what the driver's file can do.

func (f *modelFile) ModelCard() vfs.ModelCard {
	m, ok := f.VFSFile.(vfs.Modeler)
	if !ok {
		return vfs.ModelCard{}
	}
	card := m.ModelCard()
	card.ContextWindow, card.WindowFrom = 0, "" // the driver knows that of its default model
	for i, pr := range f.used {
		metered, why := f.models.Drivers.Metered(f.caller, pr)
		card.Metered = metered && len(f.used) == 1 // what two count in two ways is reserved as a whole
		card.Unbudgeted = cmp.Or(card.Unbudgeted, why)
		if n := pr.Window(f.asked[i]); n > 0 && (card.ContextWindow == 0 || n < card.ContextWindow) {
			card.ContextWindow, card.WindowFrom = n, pr.WindowFrom(f.asked[i])
		}
	}
	return card
}

func (f *modelFile) NotifyStream(h func(vfs.StreamPart)) {
	if n, ok := f.VFSFile.(vfs.StreamNotifier); ok {
		n.NotifyStream(h)
	}
}

func providerList(p *profile.Profile) string {
	var b strings.Builder
	for _, pr := range p.Providers.List {
		b.WriteString(pr.Name + "\n")
	}
	return b.String()
}
