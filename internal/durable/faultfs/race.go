//go:build race

package faultfs

const raceDetector = true
