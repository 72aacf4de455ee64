package proc

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/runtime/env"
	"rnix/types"
)

var secrets = []string{
	"GITHUB_TOKEN", "MY_API_KEY", "my_secret", "DB_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_REGION", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL",
	"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "GIT_SSH_COMMAND", "GIT_DIR", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV", "ENV",
	"PROMPT_COMMAND", "SSH_AUTH_SOCK", "GOOGLE_APPLICATION_CREDENTIALS", "Npm_Token", "R2_SECRET",
}

func TestRealChildrenOfEachKindSeeNoSecret(t *testing.T) {
	for _, n := range secrets {
		t.Setenv(n, "canary-"+n)
	}
	m := newManager(t)
	for _, kind := range []Kind{KindShell, KindMCP, KindLLM, KindGit} {
		for name, environ := range map[string][]string{
			"inherited": ComposeEnv(os.Environ(), secrets, nil), "raw": os.Environ(), "over the raw one": env.ComposeChildEnv(os.Environ()),
			"composed": env.NewComposer().Compose(map[string]string{"MY_API_KEY": "canary-x", "RNIX_SESSION_TOKEN": "canary-y", "PATH": os.Getenv("PATH")}, agent.Spec{}),
		} {
			var out bytes.Buffer
			spec := Spec{Kind: kind, Path: "cat", Args: []string{"/proc/self/environ"}, Env: environ, Stdout: &out}
			if kind == KindLLM || kind == KindMCP {
				spec.Credentials = []string{"ANTHROPIC_API_KEY=given", "RNIX_SESSION_TOKEN=canary-z"}
			}
			if e := start(t, m, spec).Wait(); e.Code != 0 {
				t.Fatalf("cat: %+v", e)
			}
			if strings.Contains(out.String(), "canary-") || !strings.Contains(out.String(), env.OwnerVar+"=") {
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
