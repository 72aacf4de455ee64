package statehome

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

func env(kv ...string) Lookup {
	m := map[string]string{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

func TestEachPlaceComesFromItsVariableElseFromHome(t *testing.T) {
	for _, tt := range []struct {
		name       string
		env        Lookup
		configured string
		want       Places
	}{
		{"home only", env("HOME", "/h/a"), "", Places{
			"/h/a/.rnix/data", "/h/a/.config/rnix", "/h/a/.rnix/run/rnix.sock", "/h/a/.rnix/data/log/daemon.log"}},
		{"xdg", env("HOME", "/h/a", "XDG_CONFIG_HOME", "/c", "XDG_RUNTIME_DIR", "/r/1"), "", Places{
			"/h/a/.rnix/data", "/c/rnix", "/r/1/rnix/rnix.sock", "/h/a/.rnix/data/log/daemon.log"}},
		{"relative xdg is ignored", env("HOME", "/h/a", "XDG_CONFIG_HOME", "c", "XDG_RUNTIME_DIR", "r"), "", Places{
			"/h/a/.rnix/data", "/h/a/.config/rnix", "/h/a/.rnix/run/rnix.sock", "/h/a/.rnix/data/log/daemon.log"}},
		{"the default said aloud", env("HOME", "/h/a", "RNIX_DATA_DIR", "/h/a/.rnix//data/"), "/other", Places{
			"/h/a/.rnix/data", "/h/a/.config/rnix", "/h/a/.rnix/run/rnix.sock", "/h/a/.rnix/data/log/daemon.log"}},
	} {
		got, err := Find(tt.env, tt.configured)
		if err != nil || got != tt.want {
			t.Errorf("%s: Find = %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestConfiguredDataDirYieldsToTheEnvironment(t *testing.T) {
	if d, _ := DataDir(env("HOME", "/h"), "/conf"); d != "/conf" {
		t.Errorf("configured: %s", d)
	}
	if d, _ := DataDir(env("HOME", "/h", "RNIX_DATA_DIR", "/env"), "/conf"); d != "/env" {
		t.Errorf("environment: %s", d)
	}
}

func TestAnotherDataDirHasAnotherSocket(t *testing.T) {
	e := env("HOME", "/h")
	seen := map[string]string{}
	for _, d := range []string{"/h/.rnix/data", "/x", "/y", "/x/y"} {
		s, err := Socket(e, d)
		if err != nil {
			t.Fatal(err)
		}
		if seen[s] != "" {
			t.Errorf("%s and %s share %s", d, seen[s], s)
		}
		seen[s] = d
		if again, _ := Socket(e, d+"/"); again != s {
			t.Errorf("a trailing slash moves the socket: %s, %s", s, again)
		}
	}
}

func TestNoHomeIsAnErrorUnlessNothingNeedsIt(t *testing.T) {
	for _, e := range []Lookup{env(), env("HOME", "")} {
		if _, err := Find(e, ""); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "HOME is not set") {
			t.Errorf("err = %v", err)
		}
	}
	if _, err := Find(env("RNIX_DATA_DIR", "/d", "XDG_CONFIG_HOME", "/c", "XDG_RUNTIME_DIR", "/r"), ""); err != nil {
		t.Error(err)
	}
}

func TestRelativeDataDirIsRefused(t *testing.T) {
	if _, err := DataDir(env("HOME", "/h", "RNIX_DATA_DIR", "data"), ""); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("err = %v", err)
	}
}

func TestLongSocketPathIsRefusedWithTheMend(t *testing.T) {
	fit := "/" + strings.Repeat("r", MaxSocketPath-len("//rnix/rnix.sock"))
	if s, err := Socket(env("HOME", "/h", "XDG_RUNTIME_DIR", fit), "/h/.rnix/data"); err != nil || len(s) != MaxSocketPath {
		t.Errorf("%d bytes: %v", len(s), err)
	}
	s, err := Socket(env("HOME", "/h", "XDG_RUNTIME_DIR", fit+"r"), "/h/.rnix/data")
	if err != nil || len(s) != MaxSocketPath+1 {
		t.Errorf("%d bytes: %v", len(s), err)
	}
	if err := CheckSocketPath(s[1:]); err != nil {
		t.Error(err)
	}
	err = CheckSocketPath(s)
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("err = %v", err)
	}
}

func TestPrivateDirIsMadePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := CheckPrivateDir(dir); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(dir); fi.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", fi.Mode())
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CheckPrivateDir(dir); err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(dir); fi.Mode().Perm() != 0o700 {
		t.Errorf("not mended: mode %v", fi.Mode())
	}
}

func TestDirOfAnotherIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	link := filepath.Join(dir, "link")
	open := filepath.Join(dir, "open")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, want string }{
		{link, "symbolic link"}, {file, "not a directory"}, {filepath.Join(open, "rnix"), "chmod go-w"}, {"rel", "absolute"},
	} {
		if err := CheckPrivateDir(tt.path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: err = %v, want %q", tt.path, err, tt.want)
		}
	}
	mine := filepath.Join(dir, "mine")
	if err := checkPrivateDir(mine, os.Geteuid()+1); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "owned by uid") {
		t.Errorf("foreign owner: err = %v", err)
	}
	if err := os.Chmod(open, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := CheckPrivateDir(filepath.Join(open, "rnix")); err != nil {
		t.Errorf("sticky parent: %v", err)
	}
}
