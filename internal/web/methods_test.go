package web

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// kept are the methods that the page must not have, each with the reason.
var kept = map[string]string{
	"shutdown": "the daemon is not the page's", "wait": "takes a result away from its parent",
	"compose_up": "reads any file", "supervise_up": "as compose_up", "supervise_add": "as compose_up", "supervise_check": "reads any file", "supervise_stop": "not asked for",
	"restore_files": "writes files", "remove_worktree": "writes files", "write_path": "writes anywhere", "read_path": "reads any file",
	"list_path": "as read_path", "gc": "removes histories", "remove": "removes a history for good", "keep": "not asked for", "unarchive": "not asked for", "fsck": "can repair", "explain_sandbox": "not asked for", "same_caller": "of who serves others, about its callers",
	"mcp_test": "starts a program", "mcp_mount": "as mcp_test", "mcp_unmount": "not asked for", "send": "speaks as nobody", "recv": "takes a message away from an agent", "join_group": "not asked for", "leave_group": "not asked for",
	"signal_group": "reaches more than the page shows", "list_tools": "not asked for", "export_run": "hands a whole history out, for the command line to write down", "session_tools": "an agent's own", "session_call": "an agent's own", "session_judge": "an agent's own", "notify_test": "runs a program of the user's", "mcp_reload": "starts programs of the user's",
}

func TestEveryMethodOfTheWireIsDecided(t *testing.T) {
	paths, err := filepath.Glob("../../ipc/*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`Method\[[^\]]+(?:\]string)?[^\]]*\]\{Name: "(\w+)"`)
	var names []string
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(b), -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 60 {
		t.Fatalf("only %d methods were found", len(names))
	}
	for _, name := range names {
		_, may := methods[name]
		_, not := kept[name]
		if may == not {
			t.Errorf("%s has to stand in methods, or here with the reason why the page does not have it", name)
		}
	}
	for _, name := range local {
		if slices.Contains(names, name) {
			t.Errorf("%s is ours, and the daemon has it, too", name)
		}
	}
	for name := range maps.Keys(kept) {
		if !slices.Contains(names, name) {
			t.Errorf("%s is no method any more", name)
		}
	}
}
