//go:build amd64 || arm64

package sandbox

import "testing"

// BenchmarkCommand measures what a box adds to the shortest command, from the plan to the names given back.
func BenchmarkCommand(b *testing.B) {
	for _, rung := range []Rung{RungNone, RungLandlock, RungBwrap} {
		name := string(rung)
		if rung == RungNone {
			name = "bare"
		}
		b.Run(name, func(b *testing.B) {
			policy, host, p := Everything(), Host{}, place(b)
			if rung != RungNone {
				policy, host = Standard(p), probed(b, rung)
			}
			for b.Loop() {
				if out, _ := shell(b, policy, host, p.Work, "exit 3"); out.status != 3 {
					b.Fatalf("%d %s", out.status, out.stderr)
				}
			}
		})
	}
}
