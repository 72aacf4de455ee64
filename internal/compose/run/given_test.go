package run_test

import (
	"fmt"
	"strings"
	"testing"
)

// How many results a node is given may be known only when they are there: then this node fails, and no other.
func TestANodeThatIsGivenTooMuchFailsAlone(t *testing.T) {
	f := newFlow(t)
	for i := range 513 {
		f.Write(fmt.Sprintf("many/%03d.txt", i), "x")
	}
	each := "agent: \"none-${index}\", foreach: {files: many/*.txt, max: 1000}" // it cannot be started, which is quick
	up := f.up("agents:\n  a: {intent: a x, " + each + "}\n  b: {intent: b x, " + each + "}\n" +
		"  all: {intent: all x, depends_on: {a: completed, b: completed}}\n  some: {intent: some x, depends_on: {a: completed}}\n")
	f.Wait(up.PID)
	r := f.status(up.UUID)
	if r.State != "dead" || r.Counts["failed"] != 2*513+1 || r.Counts["succeeded"] != 1 {
		t.Fatalf("%s %v", r.State, r.Counts)
	}
	for _, n := range r.Nodes {
		if n.Name == "all" && (n.State != "failed" || !strings.Contains(n.Why, "it would be given 1026 results (513 of a, 513 of b)")) {
			t.Errorf("%+v", n)
		}
	}
}
