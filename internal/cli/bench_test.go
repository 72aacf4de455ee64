package cli

import "testing"

// BenchmarkCommands is what every call of the program pays before it does anything.
func BenchmarkCommands(b *testing.B) {
	a, err := newApp(Host{Args: []string{"ps"}, Dir: "/"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		newRoot(a)
	}
}
