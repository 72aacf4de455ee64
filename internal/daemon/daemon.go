// Package daemon puts the parts together: data directory, socket, kernel, devices and the handlers of
// the wire. It owns the order in which they start and stop, and what a start finds and mends after a
// crash. It is the only package that knows both the kernel and the wire.
package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/fs"
	"rnix/drivers/harness"
	"rnix/drivers/mcp"
	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/gc"
	"rnix/internal/instance"
	"rnix/internal/launch"
	"rnix/internal/proc"
	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/redact"
	"rnix/internal/service/agentcli"
	"rnix/internal/service/asks"
	"rnix/internal/service/autoresume"
	"rnix/internal/service/billing"
	"rnix/internal/service/catalog"
	"rnix/internal/service/confine"
	"rnix/internal/service/control"
	"rnix/internal/service/files"
	"rnix/internal/service/flows"
	"rnix/internal/service/groups"
	"rnix/internal/service/histories"
	"rnix/internal/service/lifecycle"
	"rnix/internal/service/mail"
	"rnix/internal/service/notify"
	"rnix/internal/service/paths"
	"rnix/internal/service/platform"
	"rnix/internal/service/room"
	"rnix/internal/service/storage"
	"rnix/internal/service/watch"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/runtime/env"
	"rnix/runtime/statehome"
	"rnix/types"
	"rnix/vfs"
)

// Options say what kind of daemon to run.
type Options struct {
	Version string
	// Program is this program, which serves the kernel to agents' command lines ("mcp serve"); empty = the one that runs.
	Program string
	// Guard is the warden, who ends what children have left if the daemon is killed; see proc.Warded. nil = there is none.
	Guard  *proc.Guard
	Lookup statehome.Lookup       // the daemon's environment; nil = that of the program
	Idle   time.Duration          // how long the daemon goes on without processes, connections and calls; 0 = for ever
	Ready  func(statehome.Places) // called when the socket answers; may be nil
	// Inside, in tests, is called when what an earlier daemon has left was taken up; ctx ends with the daemon, which its error ends. It may be nil.
	Inside func(ctx context.Context, k *kernel.KernelImpl, events *event.Log) error
	// Store, in tests, is given the files that the daemon has opened and returns what it works with in their stead; nil = the files.
	Store    func(store.Opened) store.Opened
	Network  *confine.Network // in tests, how the proxies of boxes reach hosts; nil = as this machine does
	Events   int              // how many are kept in memory; 0 = event.DefaultCapacity
	LogLevel slog.Level       // the least that is logged
}

// Daemon is a running daemon.
type Daemon struct {
	opt         Options
	places      statehome.Places
	home        string
	configDir   string
	userScratch string // for outputs that belong to no process
	started     time.Time
	log         *slog.Logger
	secrets     *redact.Set // of all clients so far; see learn
	profiles    *profile.Reader
	journal     store.Opened
	store       *records.Store
	pids        *durable.Counter
	events      *event.Log
	written     *event.Files
	procs       *proc.Manager
	channels    *ipc.Channels // of what works for processes
	devices     *vfs.DeviceRegistry
	mounts      *vfs.MountManager
	models      *catalog.Models
	seen        *fs.Seen
	kernel      *kernel.KernelImpl
	stored      *launch.Stored
	launcher    *launch.Launcher
	names       *lifecycle.Names // says what a name means
	access      *lifecycle.Access
	lifecycle   *lifecycle.Service
	auto        *autoresume.Service
	clis        *agentcli.Service
	sandbox     *confine.Service
	server      *ipc.Server
	idle        *control.Idle
	misread     []string // what is wrong in the configuration
	bridge      *harness.Bridge
	platforms   *platform.Service
	collector   *gc.Collector
	retention   config.Problems // why it is not known how long histories are kept; none goes then
	room        *room.Room
	outputs     int64 // bytes that the outputs of a process may take; 0 = no bound
	storage     *storage.Service
	mail        *mail.Service
	asks        *asks.Service
	notices     *notify.Service
	groups      *groups.Service
	looks       *looks
	watch       *watch.Service
	histories   *histories.Service
	billing     *billing.Service
	files       *files.Service
	snapshots   *files.Snapshots // what files shows of files
	trees       *files.Trees     // and the git work trees of processes
	catalog     *catalog.Service
	paths       *paths.Service
	control     *control.Service
	flows       *flows.Service
	flowing     *flows.Profiles // with which they start processes
	notes       notes
	background  sync.WaitGroup   // what runs beside the handlers; ends with the daemon's context
	looked      chan struct{}    // closed when it is known what an earlier daemon has left
	heartbeat   kernel.Heartbeat // how processes without progress are looked for
	bootstrap   *flows.Boot
	limits      kernel.Limits
	stop        context.CancelFunc
	stopping    atomic.Bool // set before the first refusal, and never taken back
	stopper     stopper
}

func newDaemon(opt Options) *Daemon {
	d := &Daemon{opt: opt, started: time.Now(), idle: control.NewIdle(time.Now()), looked: make(chan struct{}), secrets: new(redact.Set), access: new(lifecycle.Access), auto: autoresume.New(), watch: new(watch.Service), billing: new(billing.Service), storage: new(storage.Service), mail: new(mail.Service), asks: new(asks.Service), groups: new(groups.Service), sandbox: new(confine.Service)}
	d.bootstrap = newBoot(d)
	return d
}

// Run runs a daemon until ctx ends, somebody calls shutdown, or it was idle for long enough. It returns
// when everything has stopped: agents are suspended on disk, OS children are gone.
func Run(ctx context.Context, opt Options) (err error) {
	if opt.Lookup == nil {
		opt.Lookup = os.LookupEnv
	}
	if opt.Program == "" {
		if opt.Program, err = os.Executable(); err != nil {
			return types.Errorf(types.ErrInternal, "Start", "", "this program cannot be found: %w", err)
		}
	}
	if err := instance.MayStart(opt.Lookup); err != nil {
		return err
	}
	d := newDaemon(opt)
	ctx, d.stop = context.WithCancel(ctx)
	defer d.stop()
	l, lock, undo, err := d.open(ctx)
	defer func() { err = errors.Join(err, undo.run()) }()
	if err != nil {
		return err
	}
	init := readInit(d)
	tend(ctx, d)
	defer d.background.Wait()
	d.server = ipc.NewServer(ipc.ServerOptions{Logger: d.log})
	d.handle(d.server)
	served := make(chan error, 1)
	go func() { served <- d.server.Serve(l) }()                                                 // ends with Shutdown below
	serve := func(again net.Listener) { d.background.Go(func() { _ = d.server.Serve(again) }) } // ends with Shutdown, which closes it
	serve(d.channels)
	d.background.Go(func() { instance.WatchSocket(ctx, l, d.places.Socket, serve, d.log) }) // ends with ctx
	d.background.Go(func() {
		(&room.Watch{Room: d.room, Kernel: d.kernel, Cut: cutOff{d}, Now: func() config.Disk { return diskNow(d) }, Log: d.log}).Run(ctx)
	}) // ends with ctx
	d.background.Go(func() { instance.WatchClaim(ctx, d.journal.Claim(), lock, d.log) })
	d.log.Info("ready", "version", opt.Version, "pid", os.Getpid(), "data", d.places.DataDir, "socket", d.places.Socket)
	if opt.Ready != nil {
		opt.Ready(d.places)
	}
	takeUp(ctx, d, init)
	tellPlatform(d)
	if opt.Inside != nil {
		if err := opt.Inside(ctx, d.kernel, d.events); err != nil {
			d.log.Error("inside", "err", err)
			d.stop()
		}
	}
	if opt.Idle > 0 {
		d.idle.Note(time.Now()) // to load what is stored was work
		go stopWhenIdle(ctx, d) // ends with ctx
	}
	select {
	case <-ctx.Done():
	case err = <-served:
		served <- nil
	case <-d.journal.Claim().Lost():
		err = d.journal.Claim().Check()
		d.log.Error("all agents are ended as they are: nothing that they do can be recorded", "err", err)
	}
	d.stop() // also when nobody is served any more
	d.stopping.Store(true)
	noteStop(d, err)
	d.log.Info("stopping")
	sctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err = errors.Join(err, d.bootstrap.Failed(), d.kernel.Shutdown(sctx), d.server.Shutdown(sctx))
	<-served
	return err
}

// stopTimeout bounds a graceful stop.
const stopTimeout = 20 * time.Second

// open takes the locks, listens, and brings up everything below the handlers. It listens first, so
// that a client can connect while histories are loaded.
func (d *Daemon) open(ctx context.Context) (l net.Listener, lock *ipc.Lock, back undo, err error) {
	if d.home, _ = d.opt.Lookup("HOME"); d.home == "" {
		d.home = "/"
	}
	if d.configDir, err = statehome.ConfigDir(d.opt.Lookup); err != nil {
		return nil, nil, back, err
	}
	d.profiles = &profile.Reader{UserDir: d.configDir, Home: d.home, Lookup: config.Lookup(d.opt.Lookup), Learn: func(s []env.Secret) { learn(d, s) }}
	cfg := d.profiles.Start()
	if d.places, err = statehome.Find(d.opt.Lookup, cfg.DataDir.V); err == nil {
		err = statehome.CheckSocketPath(d.places.Socket)
	}
	if err != nil {
		return nil, nil, back, err
	}
	for _, dir := range []string{d.places.DataDir, filepath.Dir(d.places.Socket)} {
		if err = statehome.CheckPrivateDir(dir); err != nil {
			return nil, nil, back, err
		}
	}
	if err = durable.CheckLocal(d.places.DataDir); err != nil {
		return nil, nil, back, err
	}
	if lock, err = instance.TakeLock(ctx, &d.places); err != nil {
		return nil, nil, back, err
	}
	back.add(lock.Close)
	claim, err := step.TakeClaim(durable.OS, d.places.DataDir) // before clients find a daemon that has none
	if durable.ReadOnly(err) {
		err = types.Errorf(types.ErrStorage, "Start", "", "the file system of %s is read-only, and it holds no histories; %s", d.places.DataDir, room.Writable)
	}
	if err != nil {
		return nil, nil, back, err
	}
	back.add(func() error { return unclaim(d, claim) })
	defer func() { noteFailure(d, err) }() // before a client that is connected already finds the socket closed
	if l, err = ipc.Listen(d.places.Socket); err != nil {
		return nil, nil, back, err
	}
	listening := l // l is nil when open returns an error
	back.add(func() error {
		if cerr := listening.Close(); !errors.Is(cerr, net.ErrClosed) {
			return cerr
		}
		return nil
	})
	d.places.Log = ipc.LogPath(d.places.Log, d.places.Socket)
	logFile, err := ipc.OpenLog(d.places.Log)
	if err != nil {
		return nil, nil, back, err
	}
	back.add(logFile.Close)
	d.log = slog.New(slog.NewTextHandler(d.secrets.Lines(logFile), &slog.HandlerOptions{Level: d.opt.LogLevel}))
	for _, p := range cfg.Problems.Strings() {
		d.log.Warn("configuration", "what", p)
		d.misread = append(d.misread, p)
	}

	durability := step.Synced
	if cfg.Durability.V == config.DurabilityNone {
		durability = step.Unsynced
	}
	files, err := store.OpenClaimed(claim, durability)
	if err != nil {
		return nil, nil, back, err
	}
	if d.journal = files; d.opt.Store != nil {
		d.journal = d.opt.Store(files)
	}
	back.add(d.journal.Close)
	if d.pids, err = d.journal.PIDs(); err != nil {
		return nil, nil, back, err
	}
	back.add(func() error { return settle(d) })
	d.journal.Index().Watch(d.watch.Touch)
	d.store = records.New(d.journal, "rnix daemon "+d.opt.Version, cfg.Checkpoint, d.log)
	d.store.OnEnd = func(id types.UUID) { d.auto.Ended(id); noteCut(d, id); d.platforms.Ended(id); d.sandbox.Ended(id) }
	d.platforms = newPlatform(d)
	d.store.Tap, d.store.Secrets = d.platforms.Record, d.secrets
	back.add(d.platforms.Stop)
	if d.store.Seals, err = records.OpenSeals(d.configDir, d.places.DataDir, d.journal.Index(), d.note); err != nil {
		return nil, nil, back, err
	}
	learn(d, secretsOf(os.Environ()))
	back.add(d.sandbox.Close)
	back.add(d.store.Close)
	d.userScratch = filepath.Join(d.places.DataDir, "scratch")
	if herr := proc.HideMemory(); herr != nil {
		d.log.Warn("the keys in this program's memory are not hidden from the commands of agents", "err", herr)
	}
	if serr := proc.BecomeSubreaper(); serr != nil {
		d.log.Warn("orphans of children cannot be adopted", "err", serr)
	}
	if d.procs, err = proc.NewManager(filepath.Join(d.places.DataDir, "children"), d.log); err != nil {
		return nil, nil, back, err
	}
	back.add(func() error { d.procs.Close(); return nil })
	d.procs.Conceal(d.secrets)
	d.channels = ipc.NewChannels(d.access.OwnerOf, d.log)
	back.add(d.channels.Close)
	d.procs.Channels = proc.Channels{DataDir: d.places.DataDir, Open: d.channels.Open}
	if err = guard(d, lock); err != nil {
		return nil, nil, back, err
	}
	d.events = event.New(d.opt.Events)
	d.written = event.WriteFiles(d.events, durable.OS, func(id types.UUID) string { return filepath.Join(d.journal.Dir(id), step.EventsFile) })
	back.add(func() error { d.events.Close(); return d.written.Close() })
	d.restore()
	d.room, d.outputs = room.New(d.places.DataDir, cfg.Disk), int64(cfg.Disk.Outputs.V)
	d.room.Look(nil) // before anything goes on
	d.heartbeat = lifecycle.HeartbeatOf(cfg.Heartbeat, func(ctx context.Context, p *kernel.Process) error { return d.lifecycle.Resumer.Restart(ctx, p) })
	if cfg.Resume.Auto.V {
		d.auto.Max = cfg.Resume.Max.V
	}
	d.limits = kernel.Limits{Depth: cfg.Limits.Depth.V, Children: cfg.Limits.Children.V, Family: cfg.Limits.Family.V, Total: cfg.Limits.Total.V, SpawnRate: cfg.Limits.SpawnRate.V}
	openFiles(d, cfg.Snapshots)
	if err = openStorage(ctx, d, cfg); err != nil {
		return nil, nil, back, err
	}
	back.add(d.collector.Close)
	for _, line := range d.files.TakeUp(ctx) {
		d.note("%s", line)
	}
	d.clis = newCLIs(d)
	d.bridge = d.clis.Open()
	d.models = &catalog.Models{Drivers: &catalog.Makers{Start: d.procs, Bridge: d.bridge, Sessions: d.clis, Boxes: d.sandbox}, Log: d.log}
	back.add(d.models.Close)
	return l, lock, back, d.boot()
}

// boot registers the devices and makes the kernel.
func (d *Daemon) boot() error {
	d.devices = vfs.NewDeviceRegistry()
	d.seen = fs.NewSeen()
	transports := profile.Guarded(mcp.NewTransportFactory(d.procs, mcp.Options{Log: d.log, Version: d.opt.Version, Confine: d.sandbox.Server, Env: proc.ComposeEnv(os.Environ(), nil, nil)}))
	d.mounts = vfs.NewMountManager(d.devices, transports)
	openLaunch(d)
	if err := registerDevices(d, ownDirs(d)); err != nil {
		return err
	}
	d.kernel = kernel.New(kernel.Config{
		Devices: d.devices, Mounts: d.mounts, Contexts: rnixctx.NewManager(), Events: d.events, Log: d.log, Secrets: d.secrets,
		Address: []string{statehome.EnvDataDir + "=" + d.places.DataDir}, Limits: d.limits, Heartbeat: d.heartbeat,
		Store: d.store, Workspace: &files.Workspace{Kept: d.snapshots, Planter: d.trees, Dir: d.journal.Dir}, Catalog: d.launcher.Spawner, Lifecycle: outside{d.billing, d}, Permissions: d.asks,
	}, nil)
	startServices(d, transports)
	return d.devices.Register("/proc", vfs.NewProcFS(d.kernel.Proc(), d.kernel.VFS()).Open)
}

// handle registers all methods.
func (d *Daemon) handle(s *ipc.Server) {
	registerServices(d, wire(d, s))
}
