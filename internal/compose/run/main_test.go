package run_test

import (
	"os"
	"testing"

	"rnix/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
