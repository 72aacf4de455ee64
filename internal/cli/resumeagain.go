package cli

import (
	"strconv"
	"strings"

	"rnix/ipc"
)

// againText is the command that was given, as far as it decides what becomes of the process.
func againText(req *ipc.ResumeRequest, attach []string) string {
	words := []string{"rnix resume"}
	if req.Fork {
		words = append(words, "--fork")
	}
	if req.FromStep != nil {
		words = append(words, "--from-step", strconv.Itoa(*req.FromStep))
	}
	for _, f := range []struct{ flag, value string }{{"--name", req.Name}, {"--cwd", req.Cwd}, {"--new-input", req.NewInput},
		{"--provider", req.Provider}, {"--model", req.Model}, {"--fallback-provider", req.FallbackProvider}, {"--fallback-model", req.FallbackModel}} {
		switch value := oneLine(f.value); {
		case value == "":
		case f.flag == "--new-input" && (value != f.value || len(value) > intentMax): // nobody can paste it
			words = append(words, f.flag, "-")
		default:
			words = append(words, f.flag, shellWord(value))
		}
	}
	for _, file := range attach {
		words = append(words, "--attach", shellWord(oneLine(file)))
	}
	if req.TrustProject {
		words = append(words, "--trust-project")
	}
	if req.AcceptRights {
		words = append(words, "--accept-rights")
	}
	return strings.Join(append(words, oneLine(req.Target)), " ")
}

// shellWord quotes a text for a shell, if it needs that.
func shellWord(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
