package env

import (
	"regexp"
	"strings"
	"sync"
)

// Where a command line or a URL has a secret: the password of a URL, a parameter, a flag or a setting with a name that sounds
// like one. The last group is the value.
var (
	passwordInURL = lazy(`://[^/\s@:]*:([^/\s]+)@`)
	userInURL     = lazy(`://([^/\s@:]+)(?::[^/\s]*)?@`) // with a password that says nothing, too
	parameter     = lazy(`[?&;]([A-Za-z0-9_.-]+)=([^&;\s#]+)`)
	flag          = lazy(`(?:^|\s)--?([A-Za-z][A-Za-z0-9_-]*)(?:=|\s+)([^\s-]\S*)`)
	setting       = lazy(`(?:^|[\s"'])([A-Za-z_][A-Za-z0-9_]*)=([^\s"']+)`)
	header        = lazy(`(?i)(?:^|[\s"'=])([a-z][a-z0-9-]*):\s*(?:(?:bearer|basic|token|apikey|key|digest)\s+)?([^\s"']+)`)
)

// lazy makes a regular expression when it is first wanted.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// InWords returns the secrets in a command line or a URL, without those that stand in variables there, as "${NAME}". It guesses by
// names, so it is for redaction and decides no access.
func InWords(name, text string) []Secret {
	var out []Secret
	secretWords(text, func(from, to int) {
		v := text[from:to]
		if !isPlain(v) && !strings.ContainsAny(v[:1], "/.~") { // nor a path, or half of all texts would be secret
			out = append(out, Secret{name, v})
		}
	})
	return out
}

// Conceal returns a command line or a URL as it may be shown: with "***" in the place of what InWords finds.
func Conceal(text string) string {
	hide := make([]bool, len(text))
	secretWords(text, func(from, to int) {
		for i := from; i < to; i++ {
			hide[i] = true
		}
	})
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !hide[i]:
			b.WriteByte(text[i])
		case i == 0 || !hide[i-1]:
			b.WriteString("***")
		}
	}
	return b.String()
}

// secretWords calls found for each secret in a text.
func secretWords(text string, found func(from, to int)) {
	for _, m := range passwordInURL().FindAllStringSubmatchIndex(text, -1) {
		value(text, m[2], m[3], found)
	}
	for _, m := range userInURL().FindAllStringSubmatchIndex(text, -1) {
		if isToken(text[m[2]:m[3]]) {
			value(text, m[2], m[3], found)
		}
	}
	for _, at := range []*regexp.Regexp{parameter(), flag(), setting(), header()} {
		for rest := 0; rest < len(text); {
			m := at.FindStringSubmatchIndex(text[rest:])
			if m == nil {
				break
			}
			name := strings.ToUpper(strings.ReplaceAll(text[rest+m[2]:rest+m[3]], "-", "_"))
			if (LooksSensitive(name) || matches(telling, name) || name == "KEY" || name == "AUTH" || name == "PASS") && !matches(pointing, name) {
				value(text, rest+m[4], rest+m[5], found)
			}
			rest += m[3] // the value of one may be the name of the next
		}
	}
}

// value calls found for what is no variable.
func value(text string, from, to int, found func(from, to int)) {
	if v := text[from:to]; !strings.HasPrefix(v, "$") {
		found(from, to)
	}
}
