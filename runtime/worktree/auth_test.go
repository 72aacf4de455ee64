package worktree

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"rnix/internal/plumbing"
)

const secret = "s3cr3t-t0ken"

func withAuth(header string, suppress bool) GitAuth {
	return func(context.Context, string) (string, bool, error) { return header, suppress, nil }
}

func TestAHeaderGoesToItsRepositoryOnly(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{EnvCommandRunner: f.run, GitAuth: withAuth("Authorization: Bearer "+secret, true)})
	if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://user@host.example:8443/team/r.git?x=1"}); err != nil {
		t.Fatal(err)
	}
	env := strings.Join(f.env[0], "\n")
	for _, want := range []string{"=http.https://host.example:8443/team/r.git.extraHeader\n", "=Authorization: Bearer " + secret, "=http.extraHeader\n", "=credential.helper\n", "GIT_TERMINAL_PROMPT=0", "GCM_INTERACTIVE=never", "GIT_ASKPASS=", "LC_ALL=C"} {
		if !strings.Contains(env+"\n", want) {
			t.Errorf("the environment lacks %q:\n%s", want, strings.ReplaceAll(env, secret, "..."))
		}
	}
	for _, a := range f.calls[0] {
		if strings.Contains(a, secret) || strings.Contains(a, "user@") {
			t.Errorf("argument %q", a)
		}
	}
}

func TestAHeaderIsDroppedWhereItCannotBeScoped(t *testing.T) {
	for _, url := range []string{"git@host.example:r.git", "ssh://git@host.example/r", "/srv/r"} {
		f := &fake{}
		m := manager(t, Options{EnvCommandRunner: f.run, GitAuth: withAuth("Authorization: Bearer "+secret, false)})
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: url}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(f.env[0], "\n"), secret) || f.calls[0][len(f.calls[0])-2] != url {
			t.Errorf("%s: %q", url, f.calls[0])
		}
	}
}

func TestWithoutCredentialsGitUsesItsOwn(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{EnvCommandRunner: f.run, GitAuth: withAuth("", false)})
	if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://host.example/r"}); err != nil {
		t.Fatal(err)
	}
	if env := strings.Join(f.env[0], "\n"); strings.Contains(env, "extraHeader") || strings.Contains(env, "credential.helper") {
		t.Errorf("environment %s", env)
	}
}

func TestAPasswordInAURLStandsInNoArgument(t *testing.T) {
	f := &fake{}
	m := manager(t, Options{EnvCommandRunner: f.run})
	spec := ProvisionSpec{SessionID: "s", RepoURL: "https://me:" + secret + "@host.example/r"}
	if _, err := m.Provision(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(strings.Join(f.calls[0], " "), secret) || !strings.Contains(strings.Join(f.env[0], "\n"), "=Authorization: Basic ") {
		t.Errorf("calls %q", f.calls)
	}
	if _, err := manager(t, Options{CommandRunner: f.plain}).Provision(t.Context(), spec); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("without an environment: %v", err)
	}
	if _, err := NewManager(Options{ParentDir: t.TempDir(), CommandRunner: f.plain, GitAuth: withAuth("x", false)}); err == nil {
		t.Error("credentials without an environment are accepted")
	}
}

func TestGitSeesASmallEnvironment(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("GIT_DIR", "/nowhere")
	out, err := execute(t.Context(), []string{"X=1"}, "env")
	if err != nil || strings.Contains(string(out), secret) || strings.Contains(string(out), "GIT_DIR") || !strings.Contains(string(out), "X=1\n") || !strings.Contains(string(out), "HOME="+os.Getenv("HOME")) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestTheConfigurationOfARepositoryIsReadForPrograms(t *testing.T) {
	out := "global\x00filter.lfs.clean\ngit-lfs clean\x00local\x00filter.evil.a.smudge\nsh\x00worktree\x00core.sshcommand\nssh -x\x00local\x00remote.origin.url\nhttps://h/r\x00" +
		"local\x00credential.https://h.helper\n!x\x00local\x00url.ext::sh .insteadof\nhttps:\x00local\x00core.bare\nfalse\x00local\x00section.flag\x00"
	f := readForeign(plumbing.ParseConfig([]byte(out)))
	if f.remote != "https://h/r" || len(f.quiet) != 4 || f.quiet[0].Key != "filter.evil.a.clean" {
		t.Errorf("%+v", f)
	}
	if !slices.Equal(f.programs, []string{"core.sshcommand", "credential.https://h.helper", "url.ext::sh .insteadof"}) {
		t.Errorf("programs %q", f.programs)
	}
}
