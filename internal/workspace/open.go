package workspace

import (
	"os"
	"syscall"
)

// openFlags open a file without waiting for whoever writes a pipe that has taken its place.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK | syscall.O_NOFOLLOW
