package testenv

import (
	"os"

	"rnix/internal/sandbox"
)

// SandboxOff is in the environment of every system: commands in the sandbox take ten times as long. Tests of the sandbox give SandboxOn to New.
const (
	SandboxOff = "RNIX_SANDBOX_LEVEL=off"
	SandboxOn  = "RNIX_SANDBOX_LEVEL=auto"
)

// boxed is the inner helper of a sandbox, if this process was started as one.
func boxed() (code int, asked bool) {
	if len(os.Args) < 2 || os.Args[1] != sandbox.Word {
		return 0, false
	}
	return sandbox.Helper(os.Args[2:]), true
}
