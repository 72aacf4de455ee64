//go:build !linux || (!amd64 && !arm64)

package sandbox

import (
	"errors"
	"fmt"
	"os"

	"rnix/internal/prelude"
)

// supported says that this system cannot have boxes. Nothing is proved on it, so no plan can be made but for the level off.
const supported = false

// Helper fails: there are no boxes on this system.
func Helper([]string) int {
	fmt.Fprintln(os.Stderr, "rnix: commands cannot be confined on this system")
	return NotRun
}

// running is what is written before a command is executed.
const running = 'R'

func enter(Plan, Command) (*prelude.Program, error) { return nil, errNoBoxes }

var errNoBoxes = errors.New("commands cannot be confined on this system")
