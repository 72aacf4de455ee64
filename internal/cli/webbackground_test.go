package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a dashboard that cannot be started says goes to no terminal that a program fills, and to nobody who could not be shown its link.
func TestNoDashboardWhereItsLinkCannotBeShown(t *testing.T) {
	conf, run := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(conf, "rnix"), 0o700))
	must(os.WriteFile(filepath.Join(conf, "rnix", "config.yaml"), []byte("web: {port: 7718}\n"), 0o600))
	defer webNote{webReady{"secret", "http://127.0.0.1:7718/", 7718, 1}, filepath.Join(run, "one.sock"), "/data/one", true}.note()()
	if text, err := os.ReadFile(filepath.Join(run, "web-7718.json")); err != nil || strings.Contains(string(text), "secret") {
		t.Fatalf("the note: %s, %v", text, err)
	}
	for name, c := range map[string]struct {
		set    func(*app)
		socket string
		want   string
	}{
		"talking":    {func(*app) {}, "two.sock", "port 7718 is used by the dashboard of the data directory /data/one"},
		"of its own": {func(*app) {}, "one.sock", ""},
		"filled":     {func(a *app) { a.filled.Store(true) }, "two.sock", ""},
		"quiet":      {func(a *app) { a.out.quiet = true }, "two.sock", ""},
		"json":       {func(a *app) { a.out.format = asJSON }, "two.sock", ""},
		"rnix web":   {func(a *app) { a.ownDashboard = true }, "two.sock", ""},
	} {
		var said bytes.Buffer
		a, err := newApp(Host{Args: []string{}, Dir: "/", Environ: []string{"HOME=/nonexistent", "XDG_CONFIG_HOME=" + conf}, Out: &said, Err: &said})
		must(err)
		c.set(a)
		withDashboard(t.Context(), a, filepath.Join(run, c.socket))
		if got := said.String(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
