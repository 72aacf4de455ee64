package harness_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"rnix/internal/harness/vendortest"
)

func TestMain(m *testing.M) {
	if vendortest.ServedMCP() {
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
