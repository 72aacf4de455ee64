package permit

import "testing"

func TestARuleThatNamesNothingIsDoubted(t *testing.T) {
	const command = "no tool has this name; for a command write "
	for text, want := range map[string]string{
		"git push":          command + `"shell git push *"`,
		"git  push  *":      command + `"shell git push *"`,
		"make test":         command + `"shell make test *"`,
		"git":               command + `"shell git *"`,
		"shel":              `no tool has this name; did you mean "shell"?`,
		"write-file":        `no tool has this name; did you mean "write_file"?`,
		"Bash git push *":   `only agent CLIs have a tool of this name; did you mean "shell git push *"?`,
		"Edit docs/**":      `only agent CLIs have a tool of this name; did you mean "edit_file docs/**"?`,
		"WebFetch":          `only agent CLIs have a tool of this name; did you mean "web_fetch"?`,
		"/dev/shel":         `no tool has this device; did you mean "/dev/shell"?`,
		"/usr/bin/git push": "no tool has this device",
		"plan":              command + `"shell plan *"`,
		"xyz*":              command + `"shell xyz*"`,
		// What is there, or can be.
		"shell": "", "shell git push *": "", "*": "", "*_file x": "", "/dev": "", "/dev/workspace": "", "/mnt/mcp/github": "", "github_*": "", "github_push": "", "Agent": "", "mcp__x__y": "",
		"/sys/ask": "", "ask": "", "host": "", "host *.a.test": "", "/dev/": "",
	} {
		if got := Doubt(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
