package recovery

import (
	"encoding/json"
	"fmt"
	"strings"
)

// PlanOf returns the plan that a call of the plan or replan action sets, for people to see; false if
// the call sets none.
func PlanOf(name string, input json.RawMessage) (string, bool) {
	if name != "plan" && name != "replan" {
		return "", false
	}
	var in struct {
		Steps  []string `json:"steps"`
		Reason string   `json:"reason"`
	}
	if json.Unmarshal(input, &in) != nil || name == "plan" && len(in.Steps) == 0 {
		return "", false
	}
	var b strings.Builder
	if in.Reason != "" {
		fmt.Fprintf(&b, "(%s)\n", in.Reason)
	}
	for i, s := range in.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, s)
	}
	return b.String(), true
}
