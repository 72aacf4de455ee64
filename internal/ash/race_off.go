//go:build !race

package ash

// detector is how many times the memory the race detector takes, which is not there.
const detector = 1
