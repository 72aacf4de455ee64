package actions

import (
	"encoding/json"
	"fmt"

	"rnix/agent"
	"rnix/internal/recovery"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// signal sends a signal to a descendant.
func signal(ag Agent, a *loop.Action) (string, error) {
	var in struct {
		PID    types.PID `json:"pid"`
		Signal string    `json:"signal"`
		Tree   bool      `json:"tree"`
	}
	if err := inputOf(a, &in); err != nil {
		return "", err
	}
	sig, err := types.ParseSignal(in.Signal)
	if err != nil {
		return "", err
	}
	n, err := ag.Family.Signal(in.PID, sig, in.Tree)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return fmt.Sprintf("PID %d has ended already", in.PID), nil
	}
	return fmt.Sprintf("%s sent to PID %d, %d reached", sig, in.PID, n), nil
}

// ps lists a process and its descendants, and its children that are suspended.
func ps(ag Agent) (string, error) {
	type line struct {
		PID    types.PID `json:"pid"`
		PPID   types.PID `json:"ppid,omitempty"`
		Name   string    `json:"name,omitempty"`
		State  string    `json:"state"`
		Step   int       `json:"step"`
		Tokens int       `json:"tokens"`
		Waits  string    `json:"waits_for,omitempty"`
		Intent string    `json:"intent"`
	}
	below, err := ag.Family.Below()
	if err != nil {
		return "", err
	}
	out := []line{}
	for _, v := range below {
		waits := v.Wait
		if waits == "" {
			waits = v.Asleep
		}
		out = append(out, line{v.PID, v.PPID, v.Name, v.State, v.Step, v.Tokens, waits, v.Intent})
	}
	b, err := json.Marshal(out)
	return string(b), err
}

// specialize activates a skill: its instructions are part of the system prompt from the next question on.
func specialize(ag Agent, a *loop.Action) (string, error) {
	var in struct {
		Skill string `json:"skill"`
	}
	if err := json.Unmarshal(a.Call.Input, &in); err != nil {
		return "", types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "%w", err)
	}
	s, err := ag.Activate(in.Skill)
	if err != nil {
		return "", err
	}
	text := "The skill " + s.Name + " is active: its instructions are in your system prompt from now on, below \"" + agent.SkillHeading(s.Name) + "\"."
	if s.Again {
		text = "The skill " + s.Name + " is active already: its instructions are in your system prompt."
	}
	if ag.Me().CLI { // what it has read of its system prompt, it does not read again
		text += " Here they are:\n\n" + s.Section
	}
	return text, nil
}

// plan keeps the model's plan for people to see.
func plan(ag Agent, a *loop.Action) (string, error) {
	var in struct {
		Steps  []string `json:"steps"`
		Reason string   `json:"reason"`
	}
	if err := json.Unmarshal(a.Call.Input, &in); err != nil {
		return "", types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "%w", err)
	}
	if a.Kind == loop.Plan && len(in.Steps) == 0 {
		return "", types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "steps is empty")
	}
	text, _ := recovery.PlanOf(string(a.Kind), a.Call.Input)
	ag.SetPlan(text)
	if a.Kind == loop.Replan && len(in.Steps) == 0 {
		return "The old plan is dropped. Make a new one with plan.", nil
	}
	return "The plan is noted. Begin with its first step.", nil
}
