package tokendelta_test

import (
	"testing"

	"rnix/runtime/internal/wiretest"
)

func TestTheExampleOfTheReadmeCompiles(t *testing.T) { wiretest.Readme(t) }
