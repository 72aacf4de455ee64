package llm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
	"rnix/vfs"
)

// A program that is confined works where it is told, finds its prompt there, is the one that is named, and says when it has ended.
func TestConfinedProgramsWorkWhereTheyAreTold(t *testing.T) {
	said := fmt.Sprintf(claudeOK, "fine")
	for name, script := range map[string]string{
		"claude": `pwd > "$HOME/cwd"; env >> "$HOME/cwd"; cat rnix-system-*.txt > "$HOME/prompt"; cat > /dev/null; echo '` + said + `'`,
		"agent":  `pwd > "$HOME/cwd"; env >> "$HOME/cwd"; cat > "$HOME/prompt"; echo '{"type":"result","subtype":"success","is_error":false,"result":"fine"}'`,
	} {
		t.Run(name, func(t *testing.T) {
			noPromptLeft(t)
			start, ended := newChildren(t), 0
			there, home, elsewhere := t.TempDir(), t.TempDir(), standIn(t, name, script)
			ctx := asCaller(t, t.TempDir(), map[string]string{"ANTHROPIC_API_KEY": "k", "CLAUDE_CONFIG_DIR": "/the/user's"})
			box := &proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home}}
			by := func(c vfs.Caller, command string) (llm.Confined, error) {
				if c.PID != 7 || command != name {
					t.Errorf("%d asks for %s", c.PID, command)
				}
				return llm.Confined{Box: box, Program: filepath.Join(elsewhere, name), Dir: there, Without: "CLAUDE_CONFIG_DIR", Done: func() { ended++ }}, nil
			}
			var d llm.LLMDriver = llm.NewCursorCliDriver(llm.CursorConfig{Start: start, Confine: by})
			if name == "claude" {
				d = claude(t, start, func(c *llm.ClaudeConfig) { c.Confine = by })
			}
			if resp, err := d.Call(ctx, llm.LLMRequest{Intent: "hi", SystemPrompt: "be terse", WorkDir: t.TempDir()}); err != nil || resp.Content != "fine" {
				t.Fatalf("%+v %v", resp, err)
			}
			for file, want := range map[string]string{"cwd": there + "\n", "prompt": "be terse"} {
				if b, err := os.ReadFile(filepath.Join(home, file)); err != nil || !strings.HasPrefix(string(b), want) || strings.Contains(string(b), "CLAUDE_CONFIG_DIR") {
					t.Errorf("%s: %s %v", file, b, err)
				}
			}
			if left, _ := os.ReadDir(there); ended != 1 || len(left) > 0 {
				t.Errorf("it has ended %d times, and left %v", ended, left)
			}
		})
	}
}

func TestNothingIsStartedThatCannotBeConfined(t *testing.T) {
	noPromptLeft(t)
	start := newChildren(t)
	refuses := func(vfs.Caller, string) (llm.Confined, error) {
		return llm.Confined{}, types.Errorf(types.ErrPermission, "Start", "", "nothing works here")
	}
	ctx, ended := asCaller(t, standIn(t, "claude", "exit 0"), nil), 0
	missing := func(vfs.Caller, string) (llm.Confined, error) {
		return llm.Confined{Program: "/none/claude", Done: func() { ended++ }}, nil
	}
	for _, d := range []llm.LLMDriver{
		claude(t, start, func(c *llm.ClaudeConfig) { c.Confine = missing }), llm.NewCursorCliDriver(llm.CursorConfig{Start: start, Confine: missing}),
	} {
		if _, err := d.Call(ctx, llm.LLMRequest{Intent: "hi"}); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%s: %v", d.Info().Name, err)
		}
	}
	if ended != 2 {
		t.Errorf("of what could not be started %d have ended, want 2", ended)
	}
	for _, d := range []llm.LLMDriver{
		claude(t, start, func(c *llm.ClaudeConfig) { c.Confine = refuses }), llm.NewCursorCliDriver(llm.CursorConfig{Start: start, Confine: refuses}),
	} {
		if _, err := d.Call(ctx, llm.LLMRequest{Intent: "hi"}); types.CodeOf(err) != types.ErrPermission || start.count() > 0 {
			t.Errorf("%s: %v", d.Info().Name, err)
		}
	}
}
