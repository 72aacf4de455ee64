package profile

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/step"
	"rnix/types"
)

func keyCommands(t *testing.T) (*KeyCommands, string) {
	t.Helper()
	dir := t.TempDir()
	m, err := proc.NewManager(filepath.Join(dir, "children"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return &KeyCommands{Start: m, Dir: dir}, dir
}

func printing(script string) *config.Provider {
	return &config.Provider{Name: "p", APIKeyEnv: "KEY", APIKeyCommand: []string{"sh", "-c", script}, APIKeyTTL: time.Hour}
}

func TestAKeyCommandRunsOnceForManyWhoNeedItsKey(t *testing.T) {
	k, dir := keyCommands(t)
	p := printing("echo once >> runs; pwd > /dev/null; echo \" $PART-key \"")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if key, err := k.Key(p, append(os.Environ(), "PART=my")); key != "my-key" || err != nil {
				t.Errorf("%q, %v", key, err)
			}
		})
	}
	wg.Wait()
	if b, _ := os.ReadFile(filepath.Join(dir, "runs")); string(b) != "once\n" {
		t.Errorf("it ran %q", b)
	}
	if err := k.Failed(p); err != nil {
		t.Error(err)
	}
}

func TestAKeyCommandThatBringsNoneSaysWhyWithoutWhatItPrinted(t *testing.T) {
	k, _ := keyCommands(t)
	for script, want := range map[string]string{
		"echo hush; exit 3":           "exited with 3",
		"true":                        "printed nothing",
		"echo hush; echo hush":        "several lines",
		"head -c 20000 /dev/zero":     "more than 16384 bytes",
		"kill -9 $$":                  "exited with 137",
		"echo hush >&2; printf '\\n'": "printed nothing",
	} {
		key, err := k.Key(printing(script), os.Environ())
		if key != "" || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %q, %v", script, key, err)
		}
		if k.Failed(printing(script)) == nil {
			t.Errorf("%s: it has not failed", script)
		}
	}
	none := printing("")
	none.APIKeyCommand = []string{"rnix-no-such-program"}
	if _, err := k.Key(none, os.Environ()); err == nil || !strings.Contains(err.Error(), "is not in PATH") {
		t.Error(err)
	}
	// A program of that name that somebody has put into a directory of PATH is not run.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "rnix-no-such-program"), []byte("#!/bin/sh\necho stolen\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	again := printing("")
	again.APIKeyCommand = []string{"rnix-no-such-program", "planted"}
	if key, err := k.Key(again, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}); key != "" || err == nil || !strings.Contains(err.Error(), "is only in "+dir) {
		t.Errorf("%q, %v", key, err)
	}
}

func TestAKeyIsThereOnlyWhereItIs(t *testing.T) {
	h := newHost(t)
	h.write("config/providers.yaml", "providers:\n  - {name: own, driver: openai-compat, base_url: 'http://127.0.0.1:1', api_key_env: RNIX_TEST_A_KEY}\n")
	was := step.Settled{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{WorkDir: filepath.Join(h.dir, "home/p"), Provider: "own"}}}
	if h.There(&was) {
		t.Error("a missing variable is there")
	}
	t.Setenv("RNIX_TEST_A_KEY", "k")
	if !h.There(&was) {
		t.Error("a variable that is set is not there")
	}
}

// A key that is refused is dropped and its command asked once more: a new one is there at once, the same one is no reason to ask again and again.
func TestARefusedKeyIsAskedForOnceMore(t *testing.T) {
	k, dir := keyCommands(t)
	p := printing("echo run >> runs; cat key")
	write := func(key string) {
		if err := os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	get := func(want string) {
		t.Helper()
		if key, err := k.Key(p, os.Environ()); key != want || err != nil {
			t.Errorf("%q, %v; want %q", key, err, want)
		}
	}
	runs := func() int { b, _ := os.ReadFile(filepath.Join(dir, "runs")); return strings.Count(string(b), "run") }
	write("old")
	get("old")
	write("new")
	get("old") // it is used for its time
	if !k.Refused(p, "old") {
		t.Error("it is not asked once more")
	}
	for range 3 { // others that were refused the same one before the command has answered
		if !k.Refused(p, "old") {
			t.Error("a second call does not wait for the next one")
		}
	}
	get("new")
	if !k.Refused(p, "old") { // of a call that was under way
		t.Error("there is another one")
	}
	if get("new"); runs() != 2 || !k.Good(p, os.Environ()) {
		t.Errorf("%d runs", runs())
	}
	for range 50 { // the new one is refused, too, and printed again
		k.Refused(p, "new")
		get("new")
	}
	if runs() > 3 || k.Good(p, os.Environ()) {
		t.Errorf("%d runs", runs())
	}
	one := k.of(p) // when the pause is over
	one.mu.Lock()
	one.until, one.next = time.Time{}, time.Time{}
	one.mu.Unlock()
	write("newest")
	if get("newest"); !k.Good(p, os.Environ()) {
		t.Error("a key that nobody has refused is not good")
	}
}

// A keyring and a cloud are reached by what the daemon was started with, not by what a client names.
func TestAKeyCommandHasTheDaemonsWaysToSecrets(t *testing.T) {
	k, _ := keyCommands(t)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/bus")
	t.Setenv("AWS_PROFILE", "mine")
	t.Setenv("PYTHONPATH", "/evil")
	p := printing(`echo "$DBUS_SESSION_BUS_ADDRESS,$AWS_PROFILE,$AWS_CONFIG_FILE,$PYTHONPATH,$OWN"`)
	key, err := k.Key(p, []string{"PATH=" + os.Getenv("PATH"), "AWS_PROFILE=other", "AWS_CONFIG_FILE=/evil", "PYTHONPATH=/evil", "OWN=yes"})
	if key != "unix:path=/bus,mine,,,yes" || err != nil {
		t.Errorf("%q, %v", key, err)
	}
}
