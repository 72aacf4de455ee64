package vfs

import (
	"strconv"
	"strings"
	"time"

	"rnix/types"
)

// table is lines of "key:<tab>value".
type table struct{ strings.Builder }

func (t *table) add(key, value string) {
	t.WriteString(key)
	t.WriteString(":\t")
	t.WriteString(oneLine(value))
	t.WriteByte('\n')
}

// String returns /proc/<pid>/status: a line "key:<tab>value" for each fact, with the names that the
// wire uses. Every line is always there, so that a reader can count on it; a value that is not known
// is empty. Part of the wire format; new lines go to the end.
func (s ProcStatus) String() string {
	var t table
	t.add("pid", s.PID.String())
	t.add("ppid", s.PPID.String())
	t.add("uuid", uuidText(s.UUID))
	t.add("parent_uuid", uuidText(s.ParentUUID))
	t.add("name", s.Name)
	t.add("state", s.State)
	t.add("wait", s.Wait)
	t.add("wait_until", timeText(s.WaitUntil))
	t.add("intent", s.Intent)
	t.add("agent", s.Agent)
	t.add("provider", s.Provider)
	t.add("model", s.Model)
	t.add("skills", strings.Join(s.Skills, " "))
	t.add("step", strconv.Itoa(s.Step))
	t.add("tokens_used", strconv.Itoa(s.TokensUsed))
	t.add("estimated", strconv.FormatBool(s.Estimated))
	t.add("cost_usd", dollars(s.CostUSD))
	t.add("unpriced_tokens", strconv.Itoa(s.Unpriced))
	t.add("created_at", timeText(s.CreatedAt))
	t.add("elapsed_ms", strconv.FormatInt(s.Elapsed.Milliseconds(), 10))
	t.add("allowed_devices", allowed(s.AllowedDevices))
	t.add("mcp_mounts", strings.Join(s.MCPMounts, " "))
	t.add("work_dir", s.WorkDir)
	t.add("children", strconv.Itoa(len(s.Children)))
	t.add("os_children", strconv.Itoa(s.OSChildren))
	exit := ""
	if s.Exit != nil {
		exit = s.Exit.String()
	}
	t.add("exit", exit)
	t.add("labels", s.Labels.String())
	t.add("blocked_signals", signalNames(s.BlockedSignals))
	t.add("pending_signals", signalNames(s.PendingSignals))
	t.add("on_interrupt", s.OnInterrupt)
	t.add("failed_calls", strconv.Itoa(s.FailedCalls))
	down := make([]string, len(s.MCPDown))
	for i, d := range s.MCPDown {
		down[i] = string(d) + " (start it again: " + d.Reload(s.PID) + ")"
	}
	t.add("mcp_down", strings.Join(down, "; "))
	return t.String()
}

// limits returns /proc/<pid>/limits: what the process may use, beside what it has used.
func (s ProcStatus) limits() string {
	var t table
	t.add("max_steps", upTo(s.MaxSteps)+" (at "+strconv.Itoa(s.Step)+")")
	t.add("context_budget", upTo(s.ContextBudget)+" (used "+strconv.Itoa(s.BudgetUsed)+")")
	usd := "unlimited"
	if s.BudgetUSD > 0 {
		usd = dollars(s.BudgetUSD)
	}
	t.add("budget_usd", usd+" (used "+dollars(s.BudgetUsedUSD)+")")
	t.add("timeout", span(s.Timeout))
	t.add("step_timeout", span(s.StepTimeout))
	t.add("allowed_devices", allowed(s.AllowedDevices))
	t.add("denied_devices", strings.Join(s.DeniedDevices, " "))
	t.add("work_dir", s.WorkDir)
	t.add("read_roots", strings.Join(s.ReadRoots, " "))
	return t.String()
}

// dollars is an amount without an exponent.
func dollars(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }

// allowed tells "all" from "none".
func allowed(devices []string) string {
	switch {
	case devices == nil:
		return "all"
	case len(devices) == 0:
		return "none"
	}
	return strings.Join(devices, " ")
}

func upTo(n int) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.Itoa(n)
}

func span(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return d.String()
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

func uuidText(u types.UUID) string {
	if u == (types.UUID{}) {
		return ""
	}
	return u.String()
}

func signalNames(sigs []types.Signal) string {
	names := make([]string, len(sigs))
	for i, sig := range sigs {
		names[i] = sig.String()
	}
	return strings.Join(names, " ")
}
