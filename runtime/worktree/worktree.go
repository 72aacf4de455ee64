// Package worktree gives each session a git checkout of its own and takes it back: a clone, a linked
// work tree of a clone that is there already, or an empty directory.
//
// It owns the directories that it has made below one parent directory, and a record of each, so that
// a manager that is started again knows them. It removes nothing that could be work: a directory that
// it has not made is refused and left alone, and one with work that is nowhere else is parked: it
// stays, and a ParkedError says why and how to look at it. No git is ever told to use force.
//
// It does not know what a session is for, nor who works in its checkout. Git's own configuration of a
// repository counts as written by whoever worked there: programs that it names are not run.
//
// A session with several repositories has a root: one directory with a checkout for each. A lease keeps
// a checkout, or a root, of a session that has ended until its results are in good hands.
//
// Locks: the lock of a session or a root (a file, so it holds between processes; nobody holds two, and
// the checkouts of a root and the lease of either are guarded by the same) > the gate of a repository
// (within one process: fetches and lists are readers; adding and removing work trees are writers, of which those of other
// packages do not wait for fetches). The lock of the registries of gates and fetches is a leaf.
package worktree

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// How often Provision tries, how long it waits between two tries, and how long it may wait for the
// remote, unless Options or ProvisionSpec say otherwise.
const (
	MaxSpawnRetries         = 3
	SpawnRetryDelay         = 15 * time.Second
	DefaultBaseFetchTimeout = time.Minute
)

// CloneStrategy says what a session gets.
type CloneStrategy int

// The strategies.
const (
	StrategyClone       CloneStrategy = iota // a clone of RepoURL
	StrategyWorktreeAdd                      // a linked work tree of ParentRepoPath
	StrategyEmpty                            // an empty directory; no git is run
)

func (s CloneStrategy) String() string {
	switch s {
	case StrategyClone:
		return "clone"
	case StrategyWorktreeAdd:
		return "worktree-add"
	case StrategyEmpty:
		return "empty"
	}
	return "unknown"
}

// What callers test for with errors.Is.
var (
	// ErrLostOwnership says that the platform gave the session to somebody else between two tries.
	ErrLostOwnership = errors.New("the session belongs to another owner now")
	// ErrUnknownSession says that no checkout was made for a session.
	ErrUnknownSession = errors.New("no such session")
	// ErrNoParentDir says that Options name no directory.
	ErrNoParentDir = errors.New("no parent directory is given")
	// ErrInvalidBaseRef says that a base is no name of a branch, or that the remote has no such branch.
	ErrInvalidBaseRef = errors.New("the base is no branch")
	// ErrBranchTaken says that a branch that was to be new is there already. Nothing was made.
	ErrBranchTaken = errors.New("there is a branch of that name")
	// ErrBaseFetch says that the base could not be brought up to date. Nothing was made.
	ErrBaseFetch = errors.New("the base could not be fetched")
	// ErrWorkareaRootOccupied says that there is something at the place of a checkout. It was not touched.
	ErrWorkareaRootOccupied = errors.New("the place of the checkout is taken")
	// ErrParked says that a checkout holds work that is nowhere else. It was not touched; the error is a
	// *ParkedError.
	ErrParked = errors.New("the checkout is kept")
)

// OwnershipProber says whether a session is still ours. An error means that nobody knows.
type OwnershipProber func(ctx context.Context, sessionID string) (owned bool, err error)

// CommandRunner runs a program and returns what it wrote. A program that fails is an error that has,
// in its chain, one with a method ExitCode() int, as *exec.ExitError has. A runner of this type gets no
// environment from here, so it has to set LC_ALL=C and what keeps git from running the programs that a
// repository names; an EnvCommandRunner is told them.
type CommandRunner func(ctx context.Context, name string, args ...string) ([]byte, error)

// EnvCommandRunner is a CommandRunner that is told what to add to its own environment, replacing
// variables of the same name. The values can be secret.
type EnvCommandRunner func(ctx context.Context, extraEnv []string, name string, args ...string) ([]byte, error)

// GitAuth returns the header that authenticates at a repository, such as "Authorization: Bearer ...";
// "" = none. suppressHelper switches the credential helpers of the user off. The header is sent to that
// repository only, over HTTP only, and stands in no argument and no file.
type GitAuth func(ctx context.Context, repoURL string) (authHeader string, suppressHelper bool, err error)

// Options configure a manager.
type Options struct {
	ParentDir       string          // below which the checkouts are made; required
	Logger          *slog.Logger    // nil = slog.Default()
	OwnershipProber OwnershipProber // asked before each try but the first; nil = not asked
	CommandRunner   CommandRunner   // runs git; nil = EnvCommandRunner
	// EnvCommandRunner goes before CommandRunner; nil as well = a process of its own session, with a
	// small environment, that is ended with its children when the context ends.
	EnvCommandRunner EnvCommandRunner
	GitAuth          GitAuth       // nil = what git has itself; needs a runner that takes an environment
	RetryDelay       time.Duration // between two tries; 0 = SpawnRetryDelay
}

// Manager makes and removes checkouts. Safe for concurrent use, also by several managers and processes
// over the same directory.
type Manager struct {
	dir    string
	log    *slog.Logger
	probe  OwnershipProber
	git    runner
	auth   GitAuth
	delay  time.Duration
	ledger ledger
}

// NewManager returns a manager over Options.ParentDir, which it creates. ErrNoParentDir if none is
// named.
func NewManager(opts Options) (*Manager, error) {
	if strings.TrimSpace(opts.ParentDir) == "" {
		return nil, types.Errorf(types.ErrInvalid, "NewManager", "", "%w: set Options.ParentDir", ErrNoParentDir)
	}
	dir, err := filepath.Abs(opts.ParentDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "NewManager", opts.ParentDir, "%w", err)
	}
	m := &Manager{dir: dir, log: opts.Logger, probe: opts.OwnershipProber, auth: opts.GitAuth, delay: opts.RetryDelay,
		ledger: ledger{fs: durable.OS, dir: filepath.Join(dir, StateDir)}}
	if m.log == nil {
		m.log = slog.Default()
	}
	if m.delay <= 0 {
		m.delay = SpawnRetryDelay
	}
	switch {
	case opts.EnvCommandRunner != nil:
		m.git = runner{run: opts.EnvCommandRunner, env: true}
	case opts.CommandRunner != nil:
		if opts.GitAuth != nil {
			return nil, types.Errorf(types.ErrInvalid, "NewManager", "", "GitAuth needs an EnvCommandRunner: a header may not stand in the arguments of a command")
		}
		plain := opts.CommandRunner
		m.git = runner{run: func(ctx context.Context, _ []string, name string, args ...string) ([]byte, error) {
			return plain(ctx, name, args...)
		}}
	default:
		m.git = runner{run: execute, env: true}
	}
	return m, nil
}

// ParentDir returns the absolute path of the directory below which the checkouts are.
func (m *Manager) ParentDir() string { return m.dir }

// Path returns the directory of a session's checkout. ErrUnknownSession if it has none.
func (m *Manager) Path(sessionID string) (string, error) {
	r, err := m.Result(sessionID)
	return r.Path, err
}

// ProvisionResult says what was made, and over what.
type ProvisionResult struct {
	Path     string
	Strategy CloneStrategy
	Attempts int
	Branch   string // that is checked out; "" = the remote's own, or none

	// The receipt of a work tree: the branch that it was to begin at, the commit that is checked out,
	// and whether that branch was fetched and how long it took.
	BaseRef           string
	BaseSHA           string
	BaseFetched       bool
	BaseFetchDuration time.Duration
}

// Result returns what Provision has made for a session. ErrUnknownSession if there is nothing.
func (m *Manager) Result(sessionID string) (ProvisionResult, error) {
	if err := checkSession("Result", sessionID); err != nil {
		return ProvisionResult{}, types.Errorf(types.ErrNotFound, "Result", sessionID, "%w", ErrUnknownSession)
	}
	rec, err := m.ledger.read(sessionID)
	if err != nil {
		return ProvisionResult{}, err
	}
	if rec == nil || rec.State != stateReady {
		return ProvisionResult{}, types.Errorf(types.ErrNotFound, "Result", sessionID, "%w", ErrUnknownSession)
	}
	return rec.result(), nil
}

// Sessions returns the sessions that have a checkout, in the order of their names.
func (m *Manager) Sessions() ([]string, error) { return m.ledger.sessions() }
