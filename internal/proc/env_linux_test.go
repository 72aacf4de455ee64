package proc

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/types"
)

var secrets = []string{
	"GITHUB_TOKEN", "MY_API_KEY", "my_secret", "DB_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_REGION", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL",
	"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "GIT_SSH_COMMAND", "GIT_DIR", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "ENV",
	"PROMPT_COMMAND", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "Npm_Token", "R2_SECRET",
}

func TestNoBlockedNamePasses(t *testing.T) {
	known := append(append(slices.Clone(secrets), allowed...), harmless...)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom(known), rapid.StringMatching(`[A-Za-z_/]{0,6}_?(TOKEN|Key|SECRET|x)?`))
		var source []string
		for _, n := range rapid.SliceOf(name).Draw(t, "source") {
			source = append(source, n+"=v")
		}
		extra := rapid.SliceOf(name).Draw(t, "extra")
		add := rapid.MapOf(name, rapid.Just("v")).Draw(t, "add")
		env := ComposeEnv(source, extra, add)
		for _, kv := range env {
			n, _, _ := strings.Cut(kv, "=")
			_, added := add[n]
			if Blocked(n) || (!matches(allowed, n) && !slices.Contains(extra, n) && !added) {
				t.Fatalf("%s passed", kv)
			}
		}
		if !slices.IsSorted(env) {
			t.Fatalf("not sorted: %v", env)
		}
	})
}

func TestSecretsAreBlockedWhateverTheirCase(t *testing.T) {
	for _, n := range append(slices.Clone(secrets), "", "a=b", "RNIX_OWNER") {
		if !Blocked(n) || !Blocked(strings.ToLower(n)) {
			t.Errorf("%q is not blocked", n)
		}
	}
	for _, n := range append(slices.Clone(allowed), "RNIX_PARENT_PID", "RNIX_UUID", "DATABASE_URL", "CLAUDE_CODE_MAX_RETRIES") {
		if Blocked(n) {
			t.Errorf("%s is blocked", n)
		}
	}
}

func TestUsualVariablesPassAndTheLastOneWins(t *testing.T) {
	got := ComposeEnv([]string{"PATH=/a", "HOME=/h", "PATH=/b", "LC_ALL=C", "MINE=1", "OTHER=2", "https_proxy=http://proxy:3128",
		"XDG_RUNTIME_DIR=/run", "HTTP_PROXY=http://u:p@proxy", "GOPROXY=https://u:p@x,direct", "bad"}, []string{"MINE"}, map[string]string{"RNIX_UUID": "u"})
	want := []string{"HOME=/h", "LC_ALL=C", "MINE=1", "PATH=/b", "RNIX_UUID=u", "https_proxy=http://proxy:3128"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := ComposeEnv([]string{"HTTP_PROXY=http://u:p@proxy"}, []string{"HTTP_PROXY"}, nil); len(got) != 1 {
		t.Errorf("a variable that is named does not pass: %v", got)
	}
}

func TestRealChildrenOfEachKindSeeNoSecret(t *testing.T) {
	for _, n := range secrets {
		t.Setenv(n, "canary-"+n)
	}
	m := newManager(t)
	for _, kind := range []Kind{KindShell, KindMCP, KindLLM, KindGit} {
		for name, env := range map[string][]string{"composed": ComposeEnv(os.Environ(), secrets, nil), "raw": os.Environ()} {
			var out bytes.Buffer
			spec := Spec{Kind: kind, Path: "cat", Args: []string{"/proc/self/environ"}, Env: env, Stdout: &out}
			if kind == KindLLM || kind == KindMCP {
				spec.Credentials = []string{"ANTHROPIC_API_KEY=given"}
			}
			if e := start(t, m, spec).Wait(); e.Code != 0 {
				t.Fatalf("cat: %+v", e)
			}
			if strings.Contains(out.String(), "canary-") || !strings.Contains(out.String(), ownerVar+"=") {
				t.Errorf("%s, %s: the child sees %q", kind, name, out.String())
			}
			if strings.Contains(out.String(), "ANTHROPIC_API_KEY=given") != (kind == KindLLM || kind == KindMCP) {
				t.Errorf("%s, %s: credential: %q", kind, name, out.String())
			}
		}
	}
}

func TestLookPathUsesThePathOfTheChild(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/tool", []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/plain", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := LookPath("tool", []string{"PATH=/nowhere:" + dir}); err != nil || p != dir+"/tool" {
		t.Errorf("%s, %v", p, err)
	}
	t.Chdir(dir)
	for _, path := range []string{"PATH=", "PATH=.", "PATH=:/nowhere", "X="} {
		if _, err := LookPath("tool", []string{path}); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%s: %v", path, err)
		}
	}
	if os.Getuid() == 0 {
		t.Log("root may execute what has any execute bit; plain has none")
	}
	if _, err := LookPath("plain", []string{"PATH=" + dir}); types.CodeOf(err) != types.ErrPermission {
		t.Errorf("plain: %v", err)
	}
}
