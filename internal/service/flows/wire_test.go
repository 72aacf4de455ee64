package flows

import (
	"testing"

	"rnix/internal/service/wiretest"
)

func TestWorkflowHasTheSameJSONOnTheWire(t *testing.T) { wiretest.Same(t, wireWorkflow) }
