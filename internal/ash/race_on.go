//go:build race

package ash

// detector is how many times the memory the race detector takes.
const detector = 10
