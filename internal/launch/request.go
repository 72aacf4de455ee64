package launch

import (
	"strings"
	"unicode/utf8"

	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// maxInput bounds what a person says at the point of resume, in bytes.
const maxInput = 1 << 20

// CheckResume refuses what cannot be meant.
func CheckResume(req *ipc.ResumeRequest) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Resume", req.Target, format, args...)
	}
	for _, p := range append([]string{req.OnInDoubt}, valuesOf(req.Choices)...) {
		if _, err := recovery.ParsePolicy(p); err != nil {
			return err
		}
	}
	switch {
	case req.Tree && (req.Fork || Changes(req)):
		return bad("a family is resumed as it is: no setting of it can be changed at once, and no copy of it is made")
	case req.FromStep != nil && !req.Fork:
		return bad("--from-step needs --fork: a history is never cut, a copy of its beginning is made")
	case req.FromStep != nil && *req.FromStep < 0:
		return bad("there is no step %d", *req.FromStep)
	case req.Name != "" && !req.Fork:
		return bad("a name can be given to a fork only; this process keeps its own")
	case req.Cwd != "" && !req.Fork:
		return bad("a directory can be given to a fork only; this process works where it did")
	case req.Budget != nil && *req.Budget < 0:
		return bad("the budget is %d; 0 means unlimited", *req.Budget)
	case req.BudgetUSD != nil && !(*req.BudgetUSD >= 0 && *req.BudgetUSD <= price.Max.Float()):
		return bad("the budget is %v dollars; give at most %.0f; 0 means unlimited", *req.BudgetUSD, price.Max.Float())
	case req.TimeoutMs != nil && *req.TimeoutMs < 0:
		return bad("the time limit is negative; 0 means none")
	case req.MaxSteps != nil && *req.MaxSteps < 0:
		return bad("the step limit is %d; 0 means none", *req.MaxSteps)
	case len(req.NewInput) > maxInput:
		return bad("the new input has %d bytes and at most %d are taken: put the text into a file and tell the agent to read it", len(req.NewInput), maxInput)
	case !utf8.ValidString(req.NewInput):
		return bad("the new input is not UTF-8")
	case req.NewInput != "" && strings.TrimSpace(req.NewInput) == "":
		return bad("the new input is blank")
	case req.NewInput == "" && len(req.Attachments) > 0:
		return bad("files are attached to a new input, and there is none: say what the agent should do with them")
	}
	return service.CheckAttached("Resume", req.Attachments)
}

func valuesOf(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// Changes reports whether a request asks for more than to go on.
func Changes(req *ipc.ResumeRequest) bool {
	return req.NewInput != "" || len(req.Attachments) > 0 || req.Provider != "" || req.Model != "" || req.FallbackProvider != "" || req.FallbackModel != "" ||
		req.Budget != nil || req.BudgetUSD != nil || req.MaxSteps != nil || req.TimeoutMs != nil || req.Sandbox != "" || req.Net != "" || !req.Bounds.IsZero() || len(req.Hosts) > 0 || !req.Rules.IsZero() || req.Asks != ""
}

// OnlyOn is a request to go on in the same way, and no more.
func OnlyOn(req *ipc.ResumeRequest) *ipc.ResumeRequest {
	return &ipc.ResumeRequest{Env: req.Env, OnInDoubt: req.OnInDoubt}
}
