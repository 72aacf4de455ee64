package daemon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/guarantees.md promises nothing without a test: each line of its tables names one, and all that it and docs/security.md
// name exist. What has another name would run in one gate of four only (package soak).
func TestEachGuaranteeNamesATestThatExists(t *testing.T) {
	root := filepath.Join("..", "..")
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(b, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`")
	made := false // within a table that a test makes
	total := 0
	for n, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "<!-- ") {
			made = !strings.HasPrefix(line, "<!-- end of")
		}
		tests := named.FindAllStringSubmatch(line, -1)
		for _, m := range tests {
			if total++; !there[m[1]] {
				t.Errorf("line %d names %s, and there is no such test", n+1, m[1])
			}
		}
		if strings.HasPrefix(line, "| ") && !made && len(tests) == 0 && !strings.Contains(line, "proved by") {
			t.Errorf("line %d promises something that no test proves: %s", n+1, line)
		}
	}
	if total < 40 {
		t.Errorf("only %d tests are named", total)
	}
	if b, err = os.ReadFile(filepath.Join(root, "docs", "security.md")); err != nil {
		t.Fatal(err)
	}
	tests := named.FindAllStringSubmatch(string(b), -1)
	for _, m := range tests {
		if !there[m[1]] {
			t.Errorf("docs/security.md names %s, and there is no such test", m[1])
		}
	}
	if len(tests) < 40 {
		t.Errorf("docs/security.md names only %d tests", len(tests))
	}
}
