package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// keysIn returns the keys of a file as they are written, with those of the maps in it.
func keysIn(t reflect.Type, under string) []string {
	var out []string
	for i := range t.NumField() {
		key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if key == "" {
			continue
		}
		if f := t.Field(i).Type; f.Kind() == reflect.Struct {
			out = append(out, keysIn(f, under+key+".")...)
			continue
		}
		out = append(out, under+key)
	}
	return out
}

func TestTheHelpHasEachKeyOfTheFiles(t *testing.T) {
	for help, keys := range map[string][]string{
		ConfigHelp:    keysIn(reflect.TypeFor[layer](), ""),
		ProvidersHelp: append(keysIn(reflect.TypeFor[providersFile](), ""), keysIn(reflect.TypeFor[providerEntry](), "")...),
	} {
		for _, key := range keys {
			if !regexp.MustCompile(`(?m)^  (\S+, )*` + regexp.QuoteMeta(key) + `( |,|$)`).MatchString(help) {
				t.Errorf("%s is not in the help:\n%.200s", key, help)
			}
		}
		known := strings.Join(keys, " ") + " "
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z_]+\.[a-z_.]+)`).FindAllStringSubmatch(help, -1) {
			if !strings.Contains(known, m[1]+" ") {
				t.Errorf("the help has %s, and there is no such key", m[1])
			}
		}
		for line := range strings.SplitSeq(help, "\n") {
			if len(line) > 112 {
				t.Errorf("%d characters: %s", len(line), line)
			}
		}
	}
	for _, driver := range drivers {
		if !strings.Contains(ProvidersHelp, driver) {
			t.Errorf("no driver %s in the help", driver)
		}
	}
}

func TestTheMarkInTheHelpIsOfKeysThatAProjectCannotSet(t *testing.T) {
	values := []string{"[/x]", "1", "x", "1m", "true", "brave"}
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z_]+(?:\.[a-z_]+)*)( \*)?(?:  +| ?$)`).FindAllStringSubmatch(ConfigHelp, -1) {
		refused := false
		for _, v := range values {
			words := strings.Split(m[1], ".")
			text := ""
			for i, w := range words {
				text += strings.Repeat("  ", i) + w + ":"
				if i == len(words)-1 {
					text += " " + v
				}
				text += "\n"
			}
			s := Sources{ProjectDir: t.TempDir()}
			writeExample(t, filepath.Join(s.ProjectDir, ".rnix", "config.yaml"), text)
			for _, p := range Load(s).Problems {
				refused = refused || strings.Contains(p.Message, "a project cannot set this")
			}
		}
		if marked := m[2] != ""; marked != refused {
			t.Errorf("%s: marked %v, refused %v", m[1], marked, refused)
		}
	}
}

func writeExample(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheExamplesOfTheHelpWorkAsTheyStand(t *testing.T) {
	s := Sources{UserDir: t.TempDir(), Home: "/home/somebody"}
	writeExample(t, filepath.Join(s.UserDir, "config.yaml"), configExample)
	writeExample(t, filepath.Join(s.UserDir, "providers.yaml"), providersExample)
	c := Load(s)
	if len(c.Problems) > 0 || c.MaxSteps.V != 100 || c.GC.RetentionDays.V != 90 || len(c.Permissions) != 1 {
		t.Errorf("%v\n%+v", c.Problems, c)
	}
	p := LoadProviders(s)
	if len(p.Problems) > 0 || p.UserDefault.V != "local" || p.find("local").ContextWindow != 32768 || p.find("test").Script != filepath.Join(s.UserDir, "test.yaml") {
		t.Errorf("%v\n%+v", p.Problems, p.List)
	}
}
