package soak

import (
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// TurnEnv is the variable that says which gate this is: a number from 0 on, which "./test" takes from the commit. Without
// it, and in a soak, each test has its turn.
const TurnEnv = "RNIX_TEST_TURN"

// Turns is in how many gates each dear test runs once.
const Turns = 4

// Later begins the reason of each test that waits for its turn: "./test" counts and names these apart.
const Later = "needs its turn"

// promises are the pages whose tests run in every gate.
var promises = []string{"guarantees.md", "security.md"}

// Turn skips a dear test in three gates of four: one that starts a real agent CLI, MCP server or browser, is a storm, or takes seconds of a processor for
// one row of a table, says so, and vendortest.Program says it for the first kind. In which gate it runs is chosen by its name. A test that docs/guarantees.md or docs/security.md
// names runs in each: it is what we have promised.
func Turn(t testing.TB) {
	t.Helper()
	n, some := gateNumber(t)
	if !some || On() {
		return
	}
	promised, err := promised()
	if err != nil {
		t.Fatal(err)
	}
	if !hasTurn(t.Name(), n, promised) {
		t.Skip("needs its turn, which is in another gate: ./test --all runs it")
	}
}

// gateNumber is the number of this gate, if it has one.
func gateNumber(t testing.TB) (n uint64, some bool) {
	t.Helper()
	text := os.Getenv(TurnEnv)
	if text == "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		t.Fatalf("invalid %s=%q: want a number, from 0 on", TurnEnv, text)
	}
	return n, true
}

// hasTurn reports whether a test runs in gate n.
func hasTurn(name string, n uint64, promised map[string]bool) bool {
	test, rest, _ := strings.Cut(name, "/")
	if promised[test] || promised[test+"/"+rest] {
		return true
	}
	h := fnv.New32a()
	h.Write([]byte(name))
	return uint64(h.Sum32())%Turns == n%Turns
}

// promised returns the names of the tests that the pages of promises name.
var promised = sync.OnceValues(func() (map[string]bool, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for {
		if _, err := os.Lstat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			return nil, fmt.Errorf("no go.mod above the directory of the test: which tests are promised is not known")
		}
		dir = filepath.Dir(dir)
	}
	all := map[string]bool{}
	for _, page := range promises {
		text, err := os.ReadFile(filepath.Join(dir, "docs", page))
		if err != nil {
			return nil, err
		}
		for _, name := range named(string(text)) {
			all[name] = true
		}
	}
	return all, nil
})

var (
	namesTest = regexp.MustCompile("`(Test\\w+)`(?: \\(((?:`\\w+`(?:, )?)+)\\))?")
	quoted    = regexp.MustCompile("`(\\w+)`")
)

// named returns the tests that a text names, and where it names subtests in brackets behind one, these alone.
func named(text string) (tests []string) {
	for _, m := range namesTest.FindAllStringSubmatch(text, -1) {
		if m[2] == "" {
			tests = append(tests, m[1])
			continue
		}
		for _, sub := range quoted.FindAllStringSubmatch(m[2], -1) {
			tests = append(tests, m[1]+"/"+sub[1])
		}
	}
	return tests
}
