package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAKeyFileIsReadOnlyIfItIsPrivate(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string, mode os.FileMode) string {
		if err := os.WriteFile(at(name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return at(name)
	}
	if key, err := ReadKey(write("good", " the-key\n", 0o600)); err != nil || key != "the-key" {
		t.Errorf("%q, %v", key, err)
	}
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		write("open", "the-key", 0o644): "chmod 600", write("empty", " \n", 0o600): "is empty", write("two", "the-key\nthe-key2", 0o600): "several lines",
		write("long", strings.Repeat("k", maxKey+1), 0o600): "bytes", at("none"): "no such file", at("pipe"): "is not a file", dir: "is not a file",
	} {
		if key, err := ReadKey(path); err == nil || key != "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "the-key") {
			t.Errorf("%s: %q, %v", filepath.Base(path), key, err)
		}
	}
}

func TestAKeyComesFromItsFileIfTheVariableIsNotSet(t *testing.T) {
	s := sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: anthropic, api_key_file: ~/key}\n  - {name: my-own, driver: openai-compat, base_url: http://localhost:1/v1, api_key_file: /nowhere/key}\n"})
	s.Home = t.TempDir()
	if err := os.WriteFile(filepath.Join(s.Home, "key"), []byte("from-the-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := LoadProviders(s)
	expect(t, p.Problems)
	var learned []string
	environ := map[string]string{}
	look := Keyed(func(name string) (string, bool) { v, ok := environ[name]; return v, ok }, p.List, func(name, key string) { learned = append(learned, name+"="+key) })
	if key, ok := look("ANTHROPIC_API_KEY"); !ok || key != "from-the-file" || strings.Join(learned, " ") != "ANTHROPIC_API_KEY=from-the-file" {
		t.Errorf("%q, learned %q", key, learned)
	}
	if ok, why := Available(s.Lookup)(*p.find("anthropic")); !ok || !strings.Contains(why, "/key") {
		t.Errorf("it can be used: %t, %s", ok, why)
	}
	if ok, why := Available(s.Lookup)(*p.find("my-own")); ok || !strings.Contains(why, "/nowhere/key") || p.find("my-own").APIKeyEnv != "MY_OWN_API_KEY" {
		t.Errorf("one without its file can be used: %t, %s", ok, why)
	}
	for _, name := range []string{"MY_OWN_API_KEY", "OPENAI_API_KEY", "HOME", ""} {
		if v, ok := look(name); ok {
			t.Errorf("%s is %q", name, v)
		}
	}
	environ["ANTHROPIC_API_KEY"] = "set"
	if key, _ := look("ANTHROPIC_API_KEY"); key != "set" {
		t.Errorf("the variable does not come first: %q", key)
	}
	if p := LoadProviders(sources(t, map[string]string{"project/providers.yaml": "providers:\n  - {name: anthropic, api_key_file: /key}\n"})); len(p.Problems) == 0 || p.find("anthropic").APIKeyFile != "" {
		t.Errorf("a project says where a key is: %v", p.Problems)
	}
	if p := LoadProviders(sources(t, map[string]string{"user/providers.yaml": "providers:\n  - {name: anthropic, api_key_file: key}\n"})); len(p.Problems) == 0 {
		t.Error("a relative path is accepted")
	}
}
