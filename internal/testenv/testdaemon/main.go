// Command testdaemon is the daemon of package testenv as a program of its own, which "./test" builds without the race
// detector. It runs only where testenv starts it.
package main

import (
	"fmt"
	"os"

	"rnix/internal/testenv"
)

func main() {
	code, asked := testenv.Daemon()
	if !asked {
		fmt.Fprintln(os.Stderr, "testdaemon: internal/testenv starts this program; there is nothing to run by hand")
		os.Exit(2)
	}
	os.Exit(code)
}
