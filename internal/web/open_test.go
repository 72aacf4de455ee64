package web

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// desktop puts an xdg-open into the PATH that tells what it was called with, and returns the file that it writes.
func desktop(t *testing.T) (told string) {
	t.Helper()
	dir := t.TempDir()
	told = filepath.Join(dir, "told")
	script := "#!/bin/sh\n{ printf '%s\\n' \"$*\"; cat \"$1\"; } >" + told + ".new; mv " + told + ".new " + told + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	return told
}

// comes waits until ok.
func comes(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return os.IsNotExist(err)
}

func TestFileWithTheLinkGoesWhenTheLinkIsUsed(t *testing.T) {
	d := streaming(t)
	told := desktop(t)
	done, err := d.Open(os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	comes(t, "xdg-open is called", func() bool { return !missing(told) })
	text, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	page, body, _ := strings.Cut(string(text), "\n")
	st, err := os.Stat(page)
	if err != nil || st.Mode().Perm() != 0o600 || strings.Contains(page, "token") {
		t.Fatalf("%q: %v, %v", page, st, err)
	}
	link := regexp.MustCompile(`http://[^"]+token=[A-Z2-7]+`).FindString(body)
	if got := d.browser().enter(link); got != 303 {
		t.Fatalf("%s gives %d", link, got)
	}
	comes(t, "the file goes", func() bool { return missing(filepath.Dir(page)) })
}

func TestFileWithTheLinkGoesByItselfAndAtTheEnd(t *testing.T) {
	told := desktop(t)
	for name, wait := range map[string]time.Duration{"after a while": 50 * time.Millisecond, "at the end": time.Hour} {
		done, err := open("http://127.0.0.1:1/login?token=A", make(chan struct{}), wait, os.Environ())
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(told)
		left := func() bool {
			found, err := filepath.Glob(filepath.Join(dir, "rnix-web-*"))
			return err == nil && len(found) == 0
		}
		if wait == time.Hour {
			done()
			if !left() {
				t.Errorf("%s: the file stays", name)
			}
		} else {
			comes(t, name, left)
		}
		done()
		comes(t, "xdg-open ends", func() bool { return os.Remove(told) == nil })
	}
}

func TestFileWithTheLinkGoesWhenThereIsNoDesktop(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	t.Setenv("TMPDIR", dir)
	done, err := open("http://127.0.0.1:1/login?token=A", nil, time.Hour, nil)
	done()
	if found, _ := os.ReadDir(dir); err == nil || len(found) > 0 {
		t.Errorf("%v, %v", err, found)
	}
}
