package service_test

import (
	"testing"

	"rnix/internal/service"
	"rnix/internal/service/wiretest"
	"rnix/internal/step"
	"rnix/ipc"
)

func TestSharedRecordsHaveTheSameJSONOnTheWire(t *testing.T) {
	wiretest.Same(t, service.WireIntent)
	wiretest.Same(t, service.WireInput)
	wiretest.Same(t, service.FromInput)
	wiretest.Same(t, func(p *step.PurseWait) *ipc.BudgetWait { return (*ipc.BudgetWait)(p) })
}
