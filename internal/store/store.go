// Package store is what this program has on disk of its histories, as those see it who work with them: Journal | Index | Derived | Blobs, and
// the right to all of it. Nobody above it names the type that has the files.
//
// It is a package of its own, and not a part of internal/step, since what a record is and where it lies change apart: internal/step
// has the formats, and its functions take a step.Journal; this package has the places.
package store

import (
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Store has the histories of one data directory. Safe for concurrent use.
type Store interface {
	Journal
	Index() Index
	Derived() Derived
	Blobs() Blobs
	// Dir returns the directory of a history on this machine, which need not be there.
	Dir(id types.UUID) string
}

// Opened is a Store as who has opened it has it.
type Opened interface {
	Store
	// Claim returns the right by which it writes.
	Claim() Claim
	// PIDs opens the counter of PIDs, which starts above every PID that a history has had.
	PIDs() (*durable.Counter, error)
	// Asks opens the counter of what persons are asked, which starts above what waits for an answer.
	Asks() (*durable.Counter, error)
	// Mended returns what was damaged at the start and is mended, a line each; complete after PIDs.
	Mended() []string
	// Close closes all histories and gives the claim back. What was committed stays.
	Close() error
}

// Journal is the only place where something becomes true: what a lease has committed is there after a crash, and all else is made of it.
type Journal interface {
	step.Journal
	// Discard removes a history that nobody owns, all of it or, after an error or a crash, perhaps nothing. A missing one is no error.
	Discard(id types.UUID) error
	// Sync makes durable what can be read of a history: whoever wrote it may have been killed before it was.
	Sync(id types.UUID) error
}

// Claim is the right to write below a data directory. *step.Claim is one.
type Claim interface {
	// Check returns an error with code CONFLICT, and always the same from then on, when the right is lost.
	Check() error
	// Lost is closed when Check has found that the right is lost.
	Lost() <-chan struct{}
	// Keep makes again what says to others that it is held, if somebody has removed that. It reports whether it did.
	Keep() (again bool, err error)
}

// Index lists the histories. What it returns has its long texts cut, but for Card.
type Index interface {
	// Get returns one history.
	Get(id types.UUID) (step.ProcInfo, bool)
	// List returns all of them, in the order of their UUIDs, which is that of their creation.
	List() []step.ProcInfo
	// Open returns those that have not ended, in the same order.
	Open() []step.ProcInfo
	// Descended returns those that another one has started, in no order.
	Descended() []step.ProcInfo
	// Due returns those that are to go on by themselves now.
	Due(now time.Time) []step.ProcInfo
	// Sleeps reports whether one is to go on by itself, now or later.
	Sleeps() bool

	// Save replaces what is listed of a history, and its card.
	Save(info *step.ProcInfo) error
	// Card returns a history with its texts in full: the small file that is beside its records.
	Card(id types.UUID) (*step.ProcInfo, error)
	// Put is Save without the card.
	Put(info step.ProcInfo) error
	// Delete takes a history out whose files are gone.
	Delete(id types.UUID) error

	// Watch has changed called with each history that changes from now on, in the order of the changes. changed must not block and
	// must not call the index. It is called before the index is used by several.
	Watch(changed func(types.UUID))
	// Problems returns what could not be read when the index was made, a line each.
	Problems() []string
}

// Derived keeps what is made of the records of a history so that it need not be made again. One rule holds for all of it: it is made of records,
// is checked against its sum and against the record that it was made up to, and can be deleted without loss: whatever is wrong with
// one, there is none.
type Derived interface {
	// Checkpoint returns what folding the records amounted to; nil: there is none, or it cannot be relied on. Whether the
	// records that it was made of are there, step.Made says.
	Checkpoint(id types.UUID) *step.Checkpoint
	// SaveCheckpoint keeps one, and the one before, and returns how many bytes it takes. NOT_FOUND: the history was removed.
	SaveCheckpoint(id types.UUID, c *step.Checkpoint) (bytes int, err error)
	// Stamp says how the records look at this moment.
	Stamp(id types.UUID) step.Stamp
	// Outline returns where what stands in the records; that of no record if there is none, or it cannot be relied on.
	Outline(id types.UUID) *step.Outline
	// SaveOutline keeps one. at is the stamp of the records before it was extended last.
	SaveOutline(id types.UUID, o *step.Outline, at step.Stamp) error
	// SaveProfile keeps what fills the context, for people: this program makes it anew for each who asks.
	SaveProfile(id types.UUID, p *step.Profile) error
}

// Blobs keeps what belongs to a history, is in none of its records and cannot be made of them.
type Blobs interface {
	// InputsDir returns where the inputs of a history lie, for those who look into them as files.
	InputsDir(id types.UUID) string
	// SaveInputs makes inputs durable.
	SaveInputs(id types.UUID, inputs []step.Input) ([]step.InputRef, error)
	// Input reads one.
	Input(id types.UUID, ref step.InputRef) (string, error)
	// CopyInputs gives a history those of another. damage says which of them are not what they were.
	CopyInputs(from, to types.UUID, refs []step.InputRef) (damage string, err error)
	// SaveAttachment makes an image or a document of a message durable, once, and returns its SHA-256.
	SaveAttachment(id types.UUID, data []byte) (sum string, err error)
	// Attachment reads one. It is NOT_FOUND, or STORAGE if it is damaged.
	Attachment(id types.UUID, sum string) ([]byte, error)
	// CopyAttachments gives a history those of another, as far as they can be read.
	CopyAttachments(from, to types.UUID, as []rnixctx.Attachment) error
	// CopySeen gives a history what another knew of files at a moment.
	CopySeen(from, to types.UUID, until time.Time) error
	// SaveMeta keeps what a history began with and its steps do not repeat.
	SaveMeta(id types.UUID, m *step.Meta) error
	// Meta reads it.
	Meta(id types.UUID) (*step.Meta, error)
}
