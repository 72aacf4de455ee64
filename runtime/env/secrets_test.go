package env

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatSoundsLikeASecretIsOne(t *testing.T) {
	for kv, want := range map[string]string{
		"GITHUB_TOKEN=ghp_0123456789":                       "ghp_0123456789",
		"R2_KEY=0123456789abcdef":                           "0123456789abcdef",
		"my_secret=x y z 1":                                 "x y z 1",
		"SENTRY_DSN=https://k@sentry/1":                     "https://k@sentry/1",
		"AWS_ACCESS_KEY_ID=AKIA0123456789":                  "AKIA0123456789",
		"DATABASE_URL=postgres://u:pa%20ss@h/db":            "pa ss",
		"GOPROXY=https://u:pw1@a,https://u:pw2@b|direct":    "pw1 pw2",
		"HTTPS_PROXY=http://proxy:3128":                     "",
		"REPO=https://ghp0123456789abcdefghij@github.com/x": "ghp0123456789abcdefghij",
		"REPO=https://somebody@github.com/x":                "",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/t":            "",
		"TOKEN_URL=https://auth/token":                      "",
		"MAX_OUTPUT_TOKENS=64000000":                        "",
		"DISABLE_PASSWORD_AUTH=true":                        "",
		"PIN_SECRET=123456789012":                           "123456789012",
		"POSTGRES_PASSWORD=postgres":                        "",
		"PATH=/bin":                                         "",
		"HOME=/h":                                           "",
		"SSH_AUTH_SOCK=/run/agent":                          "",
		"KEYBOARD=us-intl-with-0123456789":                  "",
		"bare":                                              "",
	} {
		var got []string
		for _, s := range Secrets([]string{kv}) {
			got = append(got, s.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", kv, got, want)
		}
	}
}

func TestWhatAServerIsGivenIsASecretIfItLooksLikeOne(t *testing.T) {
	got := Granted(map[string]string{"DECLARED": "ghp0123456789abcdefghij", "ROOT": "/home/user/project0123456789", "REGION": "us-east-1", "API_KEY": "short-key1", "URL": "https://host/a1b2c3d4e5f6a7b8"})
	slices.SortFunc(got, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(got, []Secret{{"API_KEY", "short-key1"}, {"DECLARED", "ghp0123456789abcdefghij"}}) {
		t.Errorf("%v", got)
	}
	headers := Headers(map[string]string{"Authorization": "Bearer tok3n", "X-Any": "value1", "Accept": "application/json", "MCP-Protocol-Version": "2025-06-18", "authorization": "b4re"})
	slices.SortFunc(headers, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(headers, []Secret{{"Authorization", "tok3n"}, {"X-Any", "value1"}, {"authorization", "b4re"}}) {
		t.Errorf("%v", headers)
	}
}
