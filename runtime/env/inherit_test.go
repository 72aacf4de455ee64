package env

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		env := Inherit(source, extra, add)
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
	got := Inherit([]string{"PATH=/a", "HOME=/h", "PATH=/b", "LC_ALL=C", "MINE=1", "OTHER=2", "https_proxy=http://proxy:3128",
		"XDG_RUNTIME_DIR=/run", "HTTP_PROXY=http://u:p@proxy", "GOPROXY=https://u:p@x,direct", "ALL_PROXY=http://tok0123456789abcdefghij@proxy", "bad"}, []string{"MINE"}, map[string]string{"RNIX_UUID": "u"})
	want := []string{"HOME=/h", "LC_ALL=C", "MINE=1", "PATH=/b", "RNIX_UUID=u", "https_proxy=http://proxy:3128"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := Inherit([]string{"HTTP_PROXY=http://u:p@proxy"}, []string{"HTTP_PROXY"}, nil); len(got) != 1 {
		t.Errorf("a variable that is named does not pass: %v", got)
	}
}
