package env

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// allowed are the variables that every child may see. What is left
// out on purpose: XDG_RUNTIME_DIR and its like, which lead to the sockets of this daemon and of others.
var allowed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM",
	"TMPDIR", "TMP", "TEMP", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "HOSTNAME",
	"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS",

	"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOPRIVATE", "GONOPROXY",
	"GONOSUMDB", "GOSUMDB", "GOTOOLCHAIN", "GOWORK", "GOOS", "GOARCH", "CGO_ENABLED", "GOMAXPROCS",
	"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN",
	"NVM_DIR", "NVM_BIN", "VOLTA_HOME", "FNM_DIR", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "COREPACK_HOME",
	"NPM_CONFIG_CACHE", "NPM_CONFIG_PREFIX", "NPM_CONFIG_REGISTRY", "NODE_ENV", "NODE_EXTRA_CA_CERTS",
	"JAVA_HOME", "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "GRADLE_USER_HOME", "KOTLIN_HOME", "ANDROID_HOME",
	"VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PIPX_HOME", "UV_CACHE_DIR", "POETRY_HOME",
	"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "BUNDLE_PATH", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR",
	"DOTNET_ROOT", "HOMEBREW_PREFIX", "PKG_CONFIG_PATH", "SOURCE_DATE_EPOCH", "MAKEFLAGS", "CC", "CXX",

	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",

	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
}

// secret are the names of secrets, and of ways to the agents of secrets.
var secret = []string{
	"*_TOKEN", "*_TOKENS", "*TOKEN", "*_KEY", "*_KEYS", "*_KEY_ID", "*APIKEY*", "*API_KEY*", "*ACCESS_KEY*", "*PRIVATE_KEY*",
	"*SECRET*", "*PASSWORD*", "*PASSWD*", "*PASSPHRASE*", "*_PASS", "*_PWD", "*CREDENTIAL*", "*COOKIE*", "*_PAT", "*_AUTH", "*_BEARER", "*_DSN",
	"*CONNECTION_STRING*", "TOKEN*", "AUTHORIZATION",
	"AWS_*", "AZURE_*", "GOOGLE_*", "GCP_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_*", "VAULT_*",
	"SSH_*", "GPG_*", "DBUS_*", "KRB5*", "KUBECONFIG", "DOCKER_AUTH*", "NETRC",
}

// code are ways to run code in programs that do not expect it.
var code = []string{
	"LD_*", "DYLD_*", "GIT_*", "NODE_OPTIONS", "NODE_PATH", "PYTHON*", "PERL*", "RUBYOPT", "RUBYLIB",
	"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH", "HOSTALIASES",
	"BASH_ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "ENV", "ZDOTDIR", "PROMPT_COMMAND", "PS4", "IFS", "CDPATH",
}

// harmless are the exceptions from secret and code: who commits, and that git must not ask.
var harmless = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "GIT_CONFIG_NOSYSTEM",
}

// Blocked reports whether a variable of this name passes to a child only as a credential, whoever asks
// for it: secrets, ways to secrets, ways to run code, AgentEnvBlocklist, and what a runner keeps to itself, which is no credential
// either. Case does not matter. Names that are empty or hold '=' or NUL are blocked.
func Blocked(name string) bool {
	if !fits(name, "") || IsRunnerOnly(strings.ToUpper(name)) || listed(name) {
		return true
	}
	return (matches(secret, name) || matches(code, name)) && !matches(harmless, name)
}

// RunsCode reports whether a variable of this name can have programs run code that do not expect it. Case does not matter.
func RunsCode(name string) bool { return matches(code, name) && !matches(harmless, name) }

func listed(name string) bool {
	return slices.ContainsFunc(AgentEnvBlocklist, func(b string) bool { return strings.EqualFold(b, name) })
}

// LooksSensitive reports whether the name of a variable sounds like a secret's. A hint for people and for redaction; a
// boundary it is not.
func LooksSensitive(key string) bool {
	key = strings.ToUpper(key)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "PRIVATE_KEY", "API_KEY"} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

// Inherit returns an environment of what source has and every child may see, what allowExtra names, and add, which goes
// over both. What Blocked reports is left out
// in all three. A URL with a password in it is a secret too: it passes only if allowExtra names the
// variable. The result is sorted, with each name once; the last of several wins.
func Inherit(source []string, allowExtra []string, add map[string]string) []string {
	out := make(map[string]string)
	for _, kv := range source {
		name, value, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		if slices.Contains(allowExtra, name) || (Allowed(name) && !HoldsPassword(value)) {
			out[name] = value
		} else {
			delete(out, name)
		}
	}
	maps.Copy(out, add)
	env := make([]string, 0, len(out))
	for name, value := range out {
		if !Blocked(name) && fits(name, value) {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env
}

// Allowed reports whether every child may see a variable of this name. Case does not matter.
func Allowed(name string) bool { return matches(allowed, name) }

// HoldsPassword reports whether one of the URLs in a list, such as that of GOPROXY, has a password, or a token in place of a user, or cannot be read.
func HoldsPassword(value string) bool {
	if !strings.Contains(value, "@") {
		return false
	}
	for _, part := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		if u, err := url.Parse(part); err == nil && u.User != nil {
			if _, has := u.User.Password(); has || isToken(u.User.Username()) {
				return true
			}
		} else if err != nil && strings.Contains(part, "://") {
			return true // cannot be read, so it cannot be cleared
		}
	}
	return false
}

// matches reports whether name is one of patterns, in which a star at either end stands for anything.
func matches(patterns []string, name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(patterns, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		middle, inside := strings.CutPrefix(prefix, "*")
		switch {
		case open && inside:
			return strings.Contains(name, middle)
		case open:
			return strings.HasPrefix(name, prefix)
		case inside:
			return strings.HasSuffix(name, middle)
		}
		return name == p
	})
}
