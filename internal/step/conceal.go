package step

import (
	"bytes"
	"encoding/json"
	"slices"

	rnixctx "rnix/context"
	"rnix/internal/redact"
)

// Concealed returns the record without the secrets of a set. It shares with r what holds none. What names things (calls, tools,
// markers, snapshots) stays: recovery goes by it.
func (r Record) Concealed(secrets *redact.Set) Record {
	if secrets.Empty() {
		return r
	}
	if r.Message != nil {
		m := r.Message.Concealed(secrets)
		r.Message = &m
	}
	if r.Intent != nil {
		in := *r.Intent
		in.Input = secrets.JSON(in.Input)
		r.Intent = &in
	}
	if r.Result != nil {
		res := *r.Result
		secrets.Strings(&res.Output, &res.Error)
		r.Result = &res
	}
	if r.Step != nil {
		s := r.Step.concealed(secrets)
		r.Step = &s
	}
	if r.Marker != nil {
		m := *r.Marker
		m.Text, m.Detail = secrets.String(m.Text), concealedDetail(&m, secrets)
		if m.Exit != nil {
			exit := secrets.Exit(*m.Exit)
			m.Exit = &exit
		}
		r.Marker = &m
	}
	return r
}

// concealedDetail returns the detail of a marker. That of one which begins a run says where the process works and what it may: a
// directory must not lose its name because a password is the same.
func concealedDetail(m *Marker, secrets *redact.Set) json.RawMessage {
	clean := secrets.JSON(m.Detail)
	var s Settled
	if (m.Name != MarkerSpawn && m.Name != MarkerResumed) || bytes.Equal(clean, m.Detail) || json.Unmarshal(m.Detail, &s) != nil {
		return clean
	}
	s.ProcInfo, s.SystemPrompt, s.Settings = s.ProcInfo.Concealed(secrets), secrets.String(s.SystemPrompt), secrets.JSON(s.Settings)
	if s.Git != nil {
		s.Git.Text = secrets.String(s.Git.Text)
	}
	if s.Body != nil {
		s.Body.Spec = secrets.JSON(s.Body.Spec)
	}
	if b, err := json.Marshal(s); err == nil {
		return b
	}
	return clean
}

func (s StepRecord) concealed(secrets *redact.Set) StepRecord {
	s.Messages = rnixctx.ConcealedAll(s.Messages, secrets)
	s.RawResponse, s.ToolInput = string(secrets.JSON([]byte(s.RawResponse))), string(secrets.JSON([]byte(s.ToolInput)))
	secrets.Strings(&s.Summary, &s.ToolResult, &s.ToolError, &s.Error)
	calls := append([]Call(nil), s.ToolCalls...)
	for i := range calls {
		c := &calls[i]
		c.Input = string(secrets.JSON([]byte(c.Input)))
		secrets.Strings(&c.Result, &c.Error, &c.Failure)
	}
	s.ToolCalls = calls
	if s.End != nil {
		s.End = &Ending{Exit: secrets.Exit(s.End.Exit), Result: secrets.String(s.End.Result)}
	}
	return s
}

// Concealed returns what a history looks like, without the secrets of a set.
func (p ProcInfo) Concealed(secrets *redact.Set) ProcInfo {
	secrets.Strings(&p.Intent, &p.Result, &p.OnInterrupt, &p.SuspendReason)
	p.Labels = p.Labels.Each(secrets.String)
	if p.Exit != nil {
		exit := secrets.Exit(*p.Exit)
		p.Exit = &exit
	}
	p.Denials.Denials = slices.Clone(p.Denials.Denials)
	for i := range p.Denials.Denials {
		d := &p.Denials.Denials[i]
		secrets.Strings(&d.Tool, &d.Text, &d.Why)
	}
	p.Asks = slices.Clone(p.Asks)
	for i := range p.Asks {
		secrets.Strings(&p.Asks[i].Text, &p.Asks[i].Rule)
	}
	return p
}
