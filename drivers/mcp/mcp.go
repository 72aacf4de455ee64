// Package mcp connects to MCP servers: OS children that speak JSON lines over their standard input
// and output, and servers behind a URL (streamable HTTP). Each mounted server is one transport, which
// owns the connection, the child and everything that the child started, until it is closed.
//
// It knows no path of the name space and no process: vfs.MountManager maps paths to calls. It offers a
// server nothing in return: no sampling, no elicitation, no roots, none of our environment beyond what
// the process composed and the configuration declares. A server is not trusted: what it can make us
// wait for, keep or print is bounded by the limits below.
//
// Locks, outermost first: transport.mu > watched.mu. Neither is held while anything waits.
package mcp

import (
	"context"
	"log/slog"
	"time"

	"rnix/internal/proc"
	"rnix/types"
	"rnix/vfs"
)

// Defaults of a configuration that does not say.
const (
	defaultSpawnTimeout   = 500 * time.Millisecond // for the child to be up
	defaultMountTimeout   = 30 * time.Second       // for start and protocol, on a reconnect
	defaultRequestTimeout = 60 * time.Second       // of one call
)

// limits are what a server may cost us.
type limits struct {
	frame   int           // bytes of one message
	pages   int           // of one list
	tools   int           // of tools/list
	entries int           // of any other list
	list    int           // bytes of one list
	rate    float64       // notifications and requests per second; more are dropped
	grace   time.Duration // between asking a server to leave and killing it
	tail    int           // bytes of standard error in an error text
	patient time.Duration // how long one call waits in all until a server that was lost is connected again
}

var defaultLimits = limits{
	frame: 8 << 20, pages: 50, tools: 512, entries: 5000, list: 4 << 20, rate: 100, grace: 500 * time.Millisecond, tail: 1 << 10,
	patient: 10 * time.Second,
}

// Options are what all servers share. The zero value is usable.
type Options struct {
	// Log is told about restarts and dropped messages; nil means nobody is.
	Log *slog.Logger
	// Version is sent to servers as ours.
	Version string
	// Env is the composed environment of children whose owner has none, such as those of a test run
	// by a person.
	Env []string
	// Confine says how a server is confined that is started with an environment; nil means that proc.Confine does.
	Confine func(config vfs.MCPConfig, env []string) (*proc.Box, error)
	// AllowPrivate lets URLs lead to private addresses, and without TLS. Loopback addresses need no
	// permission if the URL itself names one; addresses that serve a cloud's credentials are never
	// reached.
	AllowPrivate bool
}

// factory makes transports.
type factory struct {
	mgr  *proc.Manager
	opts Options
	lim  limits
}

// NewTransportFactory returns the factory for vfs.NewMountManager. Children are started with mgr.
func NewTransportFactory(mgr *proc.Manager, opts Options) vfs.TransportFactory {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Version == "" {
		opts.Version = "dev"
	}
	f := &factory{mgr: mgr, opts: opts, lim: defaultLimits}
	return f.transport
}

// transport makes the transport of one server. It fails with INVALID if the configuration cannot work.
func (f *factory) transport(config vfs.MCPConfig) (vfs.MCPTransport, error) {
	t := &transport{config: config, lim: f.lim, version: f.opts.Version, said: newSaid(config.Tell, secretsOf(config)),
		log: f.opts.Log.With("server", config.Name, "pid", config.Owner.PID)}
	t.life, t.end = context.WithCancelCause(context.Background())
	switch {
	case config.Type == "http" || config.Type == "" && config.Command == "" && config.URL != "":
		client, err := f.httpClient(config)
		if err != nil {
			return nil, err
		}
		t.open = func(context.Context) (link, error) { return client.link(t.life, f.lim) }
	case config.Type == "stdio" || config.Type == "":
		if config.Command == "" {
			return nil, types.Errorf(types.ErrInvalid, "", "", "command is missing; it names the program to start")
		}
		t.open = func(ctx context.Context) (link, error) { return f.startChild(ctx, config, t.said) }
	default:
		return nil, types.Errorf(types.ErrInvalid, "", "", "transport %q is not known; use stdio or http", config.Type)
	}
	return t, nil
}
