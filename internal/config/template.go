package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"rnix/internal/yamlfile"
	"rnix/types"
)

// Template returns the files of a starter .rnix, by their paths in the project, with slashes.
func Template() map[string]string {
	return map[string]string{
		".rnix/config.yaml": `# What this project wants. It may only tighten what your own config.yaml says.

# default_agent: project     # the agent when none is named; "assistant" is built in
# max_steps: 100             # 0 = no limit
# max_failed_steps: 10       # in a row, in which every call failed, until an agent ends; 0 = no limit
# context_budget: 500000     # tokens over the life of a process and its descendants; 0 = unlimited
# budget_usd: 5              # the same in dollars
# shell:
#   timeout: 2m              # of one command
# concurrency: 2             # calls that one provider gets at once; the others wait in order
# sandbox:                   # of agents' commands; see: rnix sandbox explain
#   level: bwrap             # only that mechanism, and none in its place
#   net: none                # no network, also where your own config.yaml has it open; there also "hosts" with hosts: [npm]
#   hide: [/srv/other]       # besides what is hidden anyway
#   memory: 4GiB             # of all that an agent starts together
#   processes: 512           # the same, with threads
# checkpoint:                # whichever comes first
#   every_steps: 5           # 0 = not by steps
#   every_seconds: 30        # 0 = not by time
# Only your own config.yaml (~/.config/rnix) may have the sections gc, daemon, snapshots, disk, budget, heartbeat, platform and web, such as:
# web:
#   port: 7718               # of the dashboard, which starts with the daemon; see: rnix help web
#   search:                  # gives agents the tool web_search; they need a network besides (--net, --allow-host)
#     engine: brave          # or tavily; their keys: BRAVE_API_KEY, TAVILY_API_KEY. Or searxng, with the url of yours
`,
		".rnix/mcp.yaml": `# MCP servers. An agent uses those that its agent.yaml names under "mcp".
# Secrets stand here as ${VARIABLE}, never as themselves.

servers:
#  tracker:
#    command: npx
#    args: [-y, "@example/tracker-mcp"]
#    env: {TRACKER_TOKEN: "${TRACKER_TOKEN}"}
#  search:
#    type: http
#    url: https://mcp.example.com/
#    headers: {Authorization: "Bearer ${SEARCH_TOKEN}"}
#    request_timeout: 30s    # of one call; 60s if left out
#    mount_timeout: 10s      # until its tools can be used; 30s
#    max_output: 200000      # bytes of one answer, beyond which it is cut; 1 MiB
`,
		".rnix/agents/project/agent.yaml": `name: project
description: Works on this project and knows its rules.

# models:
#   provider: anthropic      # leave out to use the default
#   preferred: model-name
#   fallback: other-model
# max_steps: 100             # 0 = no limit
# context_budget: 500000     # tokens, with those of its descendants; 0 = unlimited
# budget_usd: 5              # the same in dollars
skills: [write-tests]
# devices: [/dev/fs, /dev/workspace, /dev/llm]   # leave out for all, [] for none
# mcp: [tracker]             # names from mcp.yaml or .mcp.json; with --no-mcp a run has none
# mcp_required: [tracker]    # those of mcp without which it is not started
# env: [CI]                  # variables that its commands may see
# step_timeout: 5m           # 0 = none
# blocked_signals: [SIGTERM] # or SIGINT; SIGKILL ends it, and it can be paused
# on_interrupt: Sum up and stop.   # what SIGINT tells it, instead of ending it
`,
		".rnix/agents/project/instructions.md": `You work on this project in its directory.

- Look at the files that a task concerns before you change them, and follow the way things are done there.
- Make the smallest change that solves the task.
- Run the project's tests before you finish; if they cannot be run, say why.
- Finish with a short result: what was done, what was checked, what is left open.
`,
	}
}

// Init writes files below dir and returns which it made and which were there and were kept, both
// sorted. It never changes a file that exists and never leaves dir through a symbolic link. On an
// error, what was made until then stays and is returned.
func Init(dir string, files map[string]string) (made, kept []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, types.Errorf(types.ErrNotFound, "Init", dir, "%w", yamlfile.Cause(err))
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		local := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
			return made, kept, types.Errorf(types.ErrStorage, "Init", name, "%w", yamlfile.Cause(err))
		}
		switch err := writeNew(root, local, files[name]); {
		case err == nil:
			made = append(made, name)
		case errors.Is(err, fs.ErrExist):
			kept = append(kept, name)
		default:
			return made, kept, types.Errorf(types.ErrStorage, "Init", name, "%w", yamlfile.Cause(err))
		}
	}
	return made, kept, nil
}

// writeNew makes a file that does not exist, and leaves none behind if that does not work.
func writeNew(root *os.Root, name, text string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = root.Remove(name) // the error that is reported says why
	}
	return err
}
