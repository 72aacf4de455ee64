package env

import (
	"net/url"
	"strings"
)

// Secret is a value that should not be shown, and the variable that it came from.
type Secret struct{ Name, Value string }

// telling are names of secrets besides those that LooksSensitive knows.
var telling = []string{
	"*_KEY", "*_KEYS", "*_KEY_ID", "*APIKEY*", "*ACCESS_KEY*", "*PASSPHRASE*", "*_PASS", "*_PWD", "*COOKIE*", "*_PAT", "*_AUTH", "*_BEARER", "*_DSN",
	"*CONNECTION_STRING*", "AUTHORIZATION",
}

// pointing are ends of names of what only leads to a secret, or says something about one.
var pointing = []string{
	"*_FILE", "*_PATH", "*_DIR", "*_URL", "*_URI", "*_ENDPOINT", "*_HOST", "*_PORT", "*_SOCK", "*_NAME", "*_TYPE", "*_TTL", "*_COUNT", "*_LIMIT", "*_COMMAND", "*_HELPER", "*_ENABLED",
}

// Secrets returns what of an environment should not be shown: the values of variables that sound like secrets, and the passwords
// of URLs in all of them. It guesses by names, so it is for redaction and decides no access.
func Secrets(environ []string) []Secret {
	var out []Secret
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok {
			out = append(out, SecretIn(name, value)...)
		}
	}
	return out
}

// SecretIn is Secrets for one variable. Of a secret that is a URL, what opens it is one by itself, too.
func SecretIn(name, value string) []Secret {
	var out []Secret
	secret := (LooksSensitive(name) || matches(telling, name)) && !matches(pointing, name) && !isPlain(value)
	if secret {
		out = []Secret{{name, value}}
	}
	if !strings.Contains(value, "@") || !strings.Contains(value, "://") {
		return out
	}
	for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
		u, err := url.Parse(part)
		if err != nil || u.User == nil {
			continue
		}
		password, has := u.User.Password()
		if password != "" {
			out = append(out, Secret{name, password})
		}
		if user := u.User.Username(); isToken(user) || !has && secret && !isPlain(user) { // as in the DSN of a service
			out = append(out, Secret{name, user})
		}
	}
	return out
}

// Granted returns the secrets among what one program is given by name: those of SecretIn, and whatever looks like a token, whatever it
// is called.
func Granted(vars map[string]string) []Secret {
	var out []Secret
	for name, value := range vars {
		found := SecretIn(name, value)
		if found == nil && isToken(value) {
			found = []Secret{{name, value}}
		}
		out = append(out, found...)
	}
	return out
}

// Headers returns the secrets among the headers of a request. The scheme before a credential is no part of it.
func Headers(headers map[string]string) []Secret {
	var out []Secret
	for name, value := range headers {
		if scheme, rest, has := strings.Cut(value, " "); has && strings.EqualFold(name, "authorization") && scheme != "" {
			value = strings.TrimSpace(rest)
		}
		plain := matches([]string{"ACCEPT*", "CONTENT-*", "USER-AGENT", "*-VERSION", "HOST", "CACHE-CONTROL", "REFERER", "ORIGIN"}, name)
		if !plain && !isPlain(value) {
			out = append(out, Secret{name, value})
		}
	}
	return out
}

// isPlain reports whether a value keeps nothing secret, whatever it is called: a number (of tokens, say), or words such as "postgres" and
// "changeme", which stand in many texts that have nothing to do with it.
func isPlain(value string) bool {
	return strings.Trim(value, "0123456789_.") == "" && len(value) < 12 || strings.Trim(value, letters+"-_. ") == "" && len(value) < 16
}

const letters, digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"

// isToken reports whether a value looks like something that was made at random.
func isToken(value string) bool {
	return len(value) >= 20 && strings.ContainsAny(value, letters) && strings.ContainsAny(value, digits) &&
		(strings.Trim(value, letters+digits+"-_+=") == "" || isBase64(value))
}

// isBase64 reports whether a value with slashes is rather a key in base64 than a path: in that, words are of one case.
func isBase64(value string) bool {
	if len(value) < 32 || strings.Trim(value, letters+digits+"+/=") != "" {
		return false
	}
	class := func(c byte) int {
		switch {
		case 'a' <= c && c <= 'z':
			return 1
		case 'A' <= c && c <= 'Z':
			return 2
		case '0' <= c && c <= '9':
			return 3
		}
		return 0
	}
	changes := 0
	for i := 1; i < len(value); i++ {
		if a, b := class(value[i-1]), class(value[i]); a != b && a != 0 && b != 0 && !(a == 2 && b == 1) { // not a word that begins with a capital
			changes++
		}
	}
	return changes*6 >= len(value) // at random every third, in names every tenth
}
