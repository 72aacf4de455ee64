package env

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatSoundsLikeASecretIsOne(t *testing.T) {
	for kv, want := range map[string]string{
		"GITHUB_TOKEN=ghp_0123456789":                                     "ghp_0123456789",
		"R2_KEY=0123456789abcdef":                                         "0123456789abcdef",
		"my_secret=x y z 1":                                               "x y z 1",
		"SENTRY_DSN=https://k@sentry/1":                                   "https://k@sentry/1",
		"AWS_ACCESS_KEY_ID=AKIA0123456789":                                "AKIA0123456789",
		"DATABASE_URL=postgres://u:pa%20ss@h/db":                          "pa ss",
		"EVENTS_DSN=https://9f8e7d6c5b4a@events.example/1":                "https://9f8e7d6c5b4a@events.example/1 9f8e7d6c5b4a",
		"MAIN_DSN=postgres://app7user:w0rd-pass@h/db":                     "postgres://app7user:w0rd-pass@h/db w0rd-pass",
		"CACHE=redis://0123456789abcdefghij@h":                            "0123456789abcdefghij",
		"GOPROXY=https://u:pw1@a,https://u:pw2@b|direct":                  "pw1 pw2",
		"HTTPS_PROXY=http://proxy:3128":                                   "",
		"REPO=https://ghp0123456789abcdefghij@github.com/x":               "ghp0123456789abcdefghij",
		"REPO=https://somebody@github.com/x":                              "",
		"REPO=https://ghp0123456789abcdefghij:x-oauth-basic@github.com/x": "x-oauth-basic ghp0123456789abcdefghij",
		"PAY=https://sk_live_0123456789abcdef:@api.example/v1":            "sk_live_0123456789abcdef",
		"BOTH=https://ghp0123456789abcdefghij:s3cret@h/":                  "s3cret ghp0123456789abcdefghij",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/t":                          "",
		"TOKEN_URL=https://auth/token":                                    "",
		"MAX_OUTPUT_TOKENS=64000000":                                      "",
		"DISABLE_PASSWORD_AUTH=true":                                      "",
		"PIN_SECRET=123456789012":                                         "123456789012",
		"POSTGRES_PASSWORD=postgres":                                      "",
		"PATH=/bin":                                                       "",
		"HOME=/h":                                                         "",
		"SSH_AUTH_SOCK=/run/agent":                                        "",
		"KEYBOARD=us-intl-with-0123456789":                                "",
		"bare":                                                            "",
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
	got := Granted(map[string]string{"DECLARED": "ghp0123456789abcdefghij", "ROOT": "/home/user/project0123456789", "REGION": "us-east-1", "API_KEY": "short-key1", "URL": "https://host/a1b2c3d4e5f6a7b8",
		"PLAIN": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "WHERE": "Users/Alice/Projects/Example2024/site"})
	slices.SortFunc(got, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(got, []Secret{{"API_KEY", "short-key1"}, {"DECLARED", "ghp0123456789abcdefghij"}, {"PLAIN", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}}) {
		t.Errorf("%v", got)
	}
	headers := Headers(map[string]string{"Authorization": "Bearer tok3n", "X-Any": "value1", "Accept": "application/json", "MCP-Protocol-Version": "2025-06-18", "authorization": "b4re"})
	slices.SortFunc(headers, func(a, b Secret) int { return strings.Compare(a.Name, b.Name) })
	if !slices.Equal(headers, []Secret{{"Authorization", "tok3n"}, {"X-Any", "value1"}, {"authorization", "b4re"}}) {
		t.Errorf("%v", headers)
	}
}

func TestACommandLineIsShownWithoutItsSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"https://u:p@ss@host/mcp":                                  "https://u:***@host/mcp",
		"https://u:s3cret@host/mcp?api_key=k1&page=2&token=t2#x":   "https://u:***@host/mcp?api_key=***&page=2&token=***#x",
		"https://${USER}:${PASS}@host/mcp?key=${KEY}":              "https://${USER}:${PASS}@host/mcp?key=${KEY}",
		"npx server --api-key sk-1 --port 80 --token=t2 --verbose": "npx server --api-key *** --port 80 --token=*** --verbose",
		"docker run -e GITHUB_TOKEN=ghp1 -e GITHUB_TOKEN image":    "docker run -e GITHUB_TOKEN=*** -e GITHUB_TOKEN image",
		"curl -H Authorization: Bearer abc1 --token --next":        "curl -H Authorization: Bearer *** --token --next",
		"mcp --token-file /run/t --keyboard us":                    "mcp --token-file /run/t --keyboard us",
		"https://ghp0123456789abcdefghij@host/x https://me@host/":  "https://***@host/x https://me@host/",
		"https://ghp0123456789abcdefghij:x-oauth-basic@host/x":     "https://***:***@host/x",
		"https://sk_live_0123456789abcdef:@host/x":                 "https://***:@host/x",
		"x -H PRIVATE-TOKEN: glpat-1 -H Accept: text/plain":        "x -H PRIVATE-TOKEN: *** -H Accept: text/plain",
		"x -H Authorization: ApiKey abc1":                          "x -H Authorization: ApiKey ***",
		"":                                                         "",
	} {
		if got := Conceal(text); got != want {
			t.Errorf("%s\n%s, want\n%s", text, got, want)
		}
	}
	if got := InWords("s", "x --auth disabled --key /etc/ssl/me.pem --token function ?key=documents"); len(got) > 0 {
		t.Errorf("words and paths are secrets: %v", got)
	}
	if got := InWords("s", "x --token abc1 https://u:pw2@h"); len(got) != 2 || !slices.Contains(got, Secret{"s", "abc1"}) || !slices.Contains(got, Secret{"s", "pw2"}) {
		t.Errorf("%v", got)
	}
}
