package types

// The words of this file stand in records on disk and on the wire alike, and mean the same in both. The packages that decide on
// them have the values, as constants.

// EventKind says what happened; its values are those of package event.
type EventKind string

// LedgerVerdict says what became of one attempt of a call; its values are those of package step.
type LedgerVerdict string

// FailureKind says in one word how a call failed; its values are those of package step.
type FailureKind string

// SpanKind says what a span of a trace is of; its values are those of package trace.
type SpanKind string

// SpanStatus says how a span of a trace ended; its values are those of package trace.
type SpanStatus string
