package histories

import (
	"testing"

	"rnix/internal/service/wiretest"
)

func TestRecordsHaveTheSameJSONOnTheWire(t *testing.T) {
	wiretest.Same(t, wireStep)
	wiretest.Same(t, wireLedgerEntry)
	wiretest.Same(t, wireProfile)
	wiretest.Same(t, wireSegment)
	wiretest.Same(t, wireSpan)
	wiretest.Same(t, wirePart)
	wiretest.Same(t, wireBlame)
	wiretest.Same(t, wireAnswer)
}
