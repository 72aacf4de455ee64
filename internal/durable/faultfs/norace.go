//go:build !race

package faultfs

const raceDetector = false
