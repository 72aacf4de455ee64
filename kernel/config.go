package kernel

import (
	"log/slog"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/vfs"
)

// Config is what a kernel is made of. Devices and Contexts are required.
type Config struct {
	Devices  *vfs.DeviceRegistry
	Mounts   MountManager // nil: agents with MCP servers cannot be spawned
	Contexts *rnixctx.Manager
	Events   *event.Log   // nil: one of the kernel's own, which DebugChan and LogChan read
	Log      *slog.Logger // nil: discarded
	// Secrets are taken out of what models are told, of the event log and of what people are shown. More may be added at
	// any time. The Store sees to it that they are in no record.
	Secrets *redact.Set // nil: none
	// Address has the variables (NAME=value) by which commands that a process starts find this kernel and no other. It may be nil.
	Address []string
	Limits  Limits
	// Heartbeat looks for processes that make no progress. The zero value: nobody looks.
	Heartbeat Heartbeat

	// What the kernel asks of whoever has made it. Each may be nil: a kernel needs none of them.
	Store       Store       // where histories are kept; nil: nothing is kept
	Workspace   Workspace   // where processes work; nil: in directories of which nothing is kept
	Catalog     Catalog     // what there is by name; nil: nothing
	Lifecycle   Lifecycle   // what becomes of a process outside of the kernel; nil: there are only those that it runs
	Permissions Permissions // about which calls a person is asked; nil: about none
}

// Limits bound what agents can start by themselves, whichever path they take.
type Limits struct {
	Depth     int // generations below what a person started; 0 = DefaultDepth
	Children  int // living children of one process; 0 = DefaultChildren
	Family    int // living processes that descend from one that a person started, with it; 0 = DefaultFamily
	Total     int // living processes; 0 = DefaultTotal
	SpawnRate int // processes that the agents of a family start within a minute; 0 = DefaultSpawnRate
}

// The limits when nothing is said.
const (
	DefaultDepth     = 8
	DefaultChildren  = 32
	DefaultFamily    = 256
	DefaultTotal     = 1 << 20
	DefaultSpawnRate = 240
)

// DefaultMaxSteps is the step limit of a process when neither the caller nor the agent sets one.
const DefaultMaxSteps = 50
