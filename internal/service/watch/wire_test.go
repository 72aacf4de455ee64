package watch

import (
	"testing"

	"rnix/internal/event"
	"rnix/internal/service/wiretest"
	"rnix/ipc"
)

func TestEventsAndFiltersHaveTheSameJSONOnTheWire(t *testing.T) {
	wiretest.Same(t, filterOf)
	wiretest.Same(t, func(e *event.Event) ipc.Event { return ipc.Event(*e) })
}
