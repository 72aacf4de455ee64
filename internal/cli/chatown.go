package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/proc"
)

// maxOwnOutput is how much is kept of what a command of the person prints, in bytes of its beginning and of its end.
const maxOwnOutput = 128 << 10

// ownShell runs command lines of the person, as they would in the shell beside the conversation.
func ownShell(a *app, dir string) func(ctx context.Context, command string) (output, how string, err error) {
	return func(ctx context.Context, command string) (output, how string, err error) {
		tmp, err := os.MkdirTemp("", "rnix-chat-")
		if err != nil {
			return "", "", err
		}
		defer os.RemoveAll(tmp)
		m, err := proc.NewManager(tmp, nil)
		if err != nil {
			return "", "", err
		}
		defer m.Close()
		shell := a.getenv("SHELL")
		if !filepath.IsAbs(shell) {
			shell = "/bin/sh"
		}
		out := proc.NewHeadTail(maxOwnOutput, "", "")
		defer out.Close()
		child, err := m.Start(ctx, proc.Spec{Kind: proc.KindShell, Path: shell, Args: []string{"-c", command}, Dir: dir, Env: a.host.Environ, Stdout: out, Stderr: out})
		if err != nil {
			return "", "", err
		}
		exit := child.Wait()
		switch {
		case exit.Cause == proc.Cancelled:
			how = "interrupted"
		case exit.Err != nil:
			return out.Text(), "", exit.Err
		case exit.Signal != 0:
			how = "ended by " + exit.Signal.String()
		case exit.Code != 0:
			how = fmt.Sprintf("exit %d", exit.Code)
		}
		return out.Text(), how, nil
	}
}

// Bounds of the messages that are kept for later conversations.
const (
	maxHistory      = 1000
	maxHistoryBytes = 1 << 20 // of the file
)

// chatHistory is the file with what was said in conversations, one JSON string on each line, the last one at the end.
func chatHistory(dataDir string) string { return filepath.Join(dataDir, "chat-history") }

// readHistory reads earlier messages; what cannot be read is none.
func readHistory(path string) (out []string) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(raw)) {
		var s string
		if json.Unmarshal([]byte(line), &s) == nil && s != "" {
			out = append(out, s)
		}
	}
	out = out[max(len(out)-maxHistory, 0):]
	if len(raw) > maxHistoryBytes {
		var b strings.Builder
		for _, s := range out[len(out)/2:] {
			b.Write(historyLine(s))
		}
		_ = durable.WriteFile(durable.OS, path, []byte(b.String()), durable.Durable) // it is tried again the next time
	}
	return out
}

// remember keeps a message for later conversations, as long as it is not too long to be typed again.
func remember(path, text string) {
	if len(text) > maxHistoryBytes/64 {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.Write(historyLine(text)) // in one piece, beside what another conversation keeps
	_ = f.Close()
}

func historyLine(s string) []byte {
	raw, _ := json.Marshal(s) // a string always can
	return append(raw, '\n')
}
