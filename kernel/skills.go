package kernel

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel/internal/actions"
	"rnix/types"
)

// instruct settles what an agent is told from the beginning: the caller's text, the agent's, and its skills.
func instruct(p *Process, ag *agent.Agent, secrets *redact.Set) {
	var parts []string
	for _, s := range []string{p.opts.SystemPrompt, ag.SystemPrompt(), wanted(p.opts.OutputSchema)} {
		if s = strings.TrimSpace(s); s != "" {
			parts = append(parts, s)
		}
	}
	var skills []string
	for _, s := range ag.Loaded {
		skills = append(skills, s.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	tellLocked(p, secrets.String(strings.Join(parts, "\n\n")), skills)
}

// tellLocked settles what the process is told, and with which skills.
//
// +checklocks:p.mu
func tellLocked(p *Process, base string, skills []string) {
	if p.today.IsZero() {
		p.today = time.Now()
	}
	git := ""
	if p.git != nil {
		git = p.git.Text
	}
	p.basePrompt, p.skills, p.system = base, skills, placed(base, p.WorkDir, p.today, git)
}

// prompted is what the process is told, with where it works and without, and the names of the skills in it. It is the same at every step until a
// skill is activated, so that a provider can cache it.
func prompted(p *Process) (system, base string, skills []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.system, p.basePrompt, p.skills
}

// Activate implements actions.Self: the instructions of a skill are part of the system prompt from the next question on, where no
// compaction loses them, and of the record, so that a resume and a fork have them too.
func (c *acting) Activate(name string) (actions.Skill, error) {
	skill, err := c.catalog.LoadSkill(c.p, name)
	if err != nil {
		return actions.Skill{}, err
	}
	s := step.SkillDetail{Name: skill.Name, Section: c.secrets.String(skill.Section())}
	again, err := c.activate(c.p, s)
	return actions.Skill{Name: s.Name, Section: s.Section, Again: again}, err
}

// activate adds a skill to what a process is told; again says that it was there. The record of the call's result follows, so this one is
// durable whenever that one is.
func (at *agentActions) activate(p *Process, s step.SkillDetail) (again bool, err error) {
	p.activating.Lock()
	defer p.activating.Unlock()
	_, was, names := prompted(p)
	if slices.Contains(names, s.Name) {
		return true, nil
	}
	base, names := step.WithSkills(was, names, []step.SkillDetail{s})
	if most, needs := p.model.ContextWindow/2, rnixctx.EstimateTokens(base)+len(p.kit.specs)/4; most > 0 && needs > most {
		return false, types.Errorf(types.ErrExhausted, "Specialize", s.Name,
			"with this skill the system prompt and the tools would have about %d tokens, and the model has room for %d in all; half of that is for the conversation", needs, 2*most)
	}
	detail, err := json.Marshal(s)
	if err != nil {
		return false, types.Errorf(types.ErrInternal, "Specialize", s.Name, "encode: %w", err)
	}
	if err := p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerSkill, PID: p.PID, Text: s.Name, Detail: detail}}); err != nil {
		return false, err
	}
	p.mu.Lock()
	tellLocked(p, base, names)
	system := p.system
	p.mu.Unlock()
	at.saves.save(p)
	return false, at.contexts.SetSystemPrompt(p.CtxID, system)
}
