package harness

import "rnix/agent"

// claudeRequest is one request to the model.
type claudeRequest struct {
	id, parent string // of the message; of the tool whose agent asked, empty = the session itself
	usage      agent.UsageEvent
}

// claudeUsage is what the API says that it counted, as far as it says it.
type claudeUsage struct {
	Input      *float64 `json:"input_tokens"`
	Output     *float64 `json:"output_tokens"`
	CacheRead  *float64 `json:"cache_read_input_tokens"`
	CacheWrite *float64 `json:"cache_creation_input_tokens"`
}

// count notes what is known of the usage of a request, and gives that of the one before it, for which
// nothing more can come.
func (l *claudeLines) count(id, parent, model string, u *claudeUsage) (out []agent.Event) {
	if l.counted[id] {
		return nil
	}
	for _, r := range l.open {
		if r.id == id {
			r.add(model, u)
			return nil
		}
	}
	for _, r := range l.open {
		if r.parent == parent {
			out = l.close(r.id)
			break
		}
	}
	r := &claudeRequest{id: id, parent: parent}
	r.add(model, u)
	l.open = append(l.open, r)
	return out
}

func (r *claudeRequest) add(model string, u *claudeUsage) {
	if model != "" {
		r.usage.Model = model
	}
	if u == nil {
		return
	}
	for _, f := range []struct {
		said *float64
		n    *int
	}{{u.Input, &r.usage.Input}, {u.Output, &r.usage.Output}, {u.CacheRead, &r.usage.CacheRead}, {u.CacheWrite, &r.usage.CacheWrite}} {
		if f.said != nil {
			*f.n = tokens(*f.said)
		}
	}
}

// close gives the usage of one request.
func (l *claudeLines) close(id string) []agent.Event {
	for i, r := range l.open {
		if r.id != id {
			continue
		}
		l.open = append(l.open[:i], l.open[i+1:]...)
		if l.counted == nil {
			l.counted = map[string]bool{}
		}
		l.counted[id] = true
		return []agent.Event{r.usage}
	}
	return nil
}

// claudeModel is what one model was used for.
type claudeModel struct {
	Input      float64 `json:"inputTokens"`
	Output     float64 `json:"outputTokens"`
	CacheRead  float64 `json:"cacheReadInputTokens"`
	CacheWrite float64 `json:"cacheCreationInputTokens"`
	Cost       float64 `json:"costUSD"`
}

// add adds a turn to the total. Versions that do not say what a turn has used say only what the program
// knows of: after a resume, the first turn is then counted with the cost of all before it.
func (l *claudeLines) add(r *claudeResult) {
	t := &l.total
	if r.Since != nil {
		for _, m := range r.Since {
			t.Input, t.Output = t.Input+tokens(m.Input), t.Output+tokens(m.Output)
			t.CacheRead, t.CacheWrite = t.CacheRead+tokens(m.CacheRead), t.CacheWrite+tokens(m.CacheWrite)
			t.CostUSD += dollars(m.Cost)
		}
	} else {
		turn := claudeRequest{}
		turn.add("", r.Usage)
		u := &turn.usage
		t.Input, t.Output, t.CacheRead, t.CacheWrite = t.Input+u.Input, t.Output+u.Output, t.CacheRead+u.CacheRead, t.CacheWrite+u.CacheWrite
		t.CostUSD += max(dollars(r.Cost)-l.cost, 0)
	}
	l.cost = dollars(r.Cost)
}
