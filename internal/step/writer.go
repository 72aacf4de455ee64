package step

import (
	"context"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

// keepBuffer is the most memory that a Writer keeps between two commits, in bytes.
const keepBuffer = 64 << 10

// Writer writes one history (the StepWriter of the specification). It is exclusive to one goroutine.
//
// Message, Intent, Result, Step and Marker collect lines in memory; Commit makes all of them durable
// with one write and one sync. Nothing counts before Commit has returned nil: a tool may run when
// its intent is committed, and a step has happened when it is.
//
// After an error of Commit that is not of its context the Writer is dead and repeats that error: the
// owner must stop, since it does not know what is on the disk or no longer owns the history.
type Writer struct {
	journal Journal
	id      types.UUID
	epoch   uint64
	due     uint64 // sequence number of the first collected line
	next    uint64 // sequence number of the next line
	lines   encoder
	rec     Record // for the next line, so that it costs no memory
	err     error

	// Seen is called with each record as it is collected, in the form in which it is written. It must not
	// keep the record. nil = nobody looks.
	Seen func(*Record)
}

// NewWriter returns a writer that goes on where lease begins.
func NewWriter(j Journal, id types.UUID, lease Lease) *Writer {
	return &Writer{journal: j, id: id, epoch: lease.Epoch, due: lease.Next, next: lease.Next}
}

// Message collects one message of the conversation. m may change afterwards.
func (w *Writer) Message(m *rnixctx.Message) error {
	return w.add(Record{Kind: KindMessage, Message: m})
}

// Answer is Message for a model's answer, with what is known of it.
func (w *Writer) Answer(m *rnixctx.Message, a *Answer) error {
	return w.add(Record{Kind: KindMessage, Message: m, Answer: a})
}

// Deliver is Message for one that holds messages of the mailbox.
func (w *Writer) Deliver(m *rnixctx.Message, seqs []uint64) error {
	return w.add(Record{Kind: KindMessage, Message: m, Delivered: seqs})
}

// Intent collects the announcement of a tool call. The call may begin after the next Commit. Its input
// is not written: the assistant's message before it has it.
func (w *Writer) Intent(i *Intent) error {
	bare := *i
	bare.Input = nil
	return w.add(Record{Kind: KindIntent, Intent: &bare})
}

// Result collects the end of a tool call. Its output is not written: the message that answers the
// call, which the caller collects next, has it.
func (w *Writer) Result(r *Result) error {
	bare := *r
	bare.Output = ""
	return w.add(Record{Kind: KindResult, Result: &bare})
}

// Step collects the record of a step. What stands in the message lines is not written a second time:
// MessageCount, which the caller sets, says how many of them were the prompt; the answer and the
// results of its calls are those behind. Readers fill them in again.
func (w *Writer) Step(s *StepRecord) error {
	bare := *s
	bare.Messages, bare.RawResponse = nil, ""
	bare.ToolInput, bare.ToolResult, bare.ToolError = "", "", ""
	bare.ToolCalls = make([]Call, len(s.ToolCalls))
	for i, c := range s.ToolCalls {
		c.Input, c.Result = "", ""
		bare.ToolCalls[i] = c
	}
	return w.add(Record{Kind: KindStep, Step: &bare})
}

// Marker collects a fact about the life of the history.
func (w *Writer) Marker(m *Marker) error { return w.add(Record{Kind: KindMarker, Marker: m}) }

// Compaction collects a marker which says that messages take the place of all earlier ones.
func (w *Writer) Compaction(text string, messages []rnixctx.Message) error {
	detail, err := CompactionDetail(messages, nil, false)
	if err != nil {
		return err
	}
	return w.Marker(&Marker{Name: MarkerCompaction, Text: text, Detail: detail})
}

// Pending reports whether there are lines that Commit would write.
func (w *Writer) Pending() bool { return w.next > w.due }

// Next returns the sequence number of the next line.
func (w *Writer) Next() uint64 { return w.next }

// Err returns the error that has ended this writer, nil while it works.
func (w *Writer) Err() error { return w.err }

func (w *Writer) add(r Record) error {
	if w.err != nil {
		return w.err
	}
	r.V, r.Seq, r.Time = FormatVersion, w.next, time.Now().UTC()
	r.Joined = w.next > w.due
	w.rec = r
	err := w.lines.add(&w.rec)
	if err == nil {
		w.next++
		if w.Seen != nil {
			w.Seen(&w.rec)
		}
	}
	w.rec = Record{}
	return err
}

// Collected returns how many bytes Commit would write.
func (w *Writer) Collected() int { return w.lines.buf.Len() }

// Commit makes everything collected durable. Without anything collected it does nothing. If ctx ends
// before the write begins, the lines stay collected for the next Commit.
func (w *Writer) Commit(ctx context.Context) error {
	if w.err != nil || w.next == w.due {
		return w.err
	}
	err := w.journal.Commit(ctx, w.id, w.epoch, w.due, w.lines.buf.Bytes())
	switch types.CodeOf(err) {
	case "":
	case types.ErrCancelled, types.ErrTimeout:
		return err
	default:
		w.err = err
		return err
	}
	w.due = w.next
	if w.lines.buf.Cap() > keepBuffer {
		w.lines = encoder{}
	} else {
		w.lines.buf.Reset()
	}
	return nil
}

// Close commits what is collected and gives the history back, in every case. The writer is dead
// afterwards.
func (w *Writer) Close(ctx context.Context) error {
	err := w.Commit(ctx)
	if rerr := w.journal.Release(ctx, w.id, w.epoch); err == nil {
		err = rerr
	}
	if w.err == nil {
		w.err = types.Errorf(types.ErrInvalid, "Commit", w.id.String(), "the writer is closed")
	}
	return err
}
