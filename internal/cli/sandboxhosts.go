package cli

import (
	"fmt"

	"rnix/internal/hosts"
	"rnix/ipc"
)

// hostsOf returns the rules and presets that were said.
func hostsOf(said []hosts.Said) (texts []string) {
	for _, s := range said {
		texts = append(texts, s.Host)
	}
	return texts
}

// showTraffic shows who has allowed the hosts of a process, and what went there and came from there.
func showTraffic(out *output, r *ipc.SandboxResponse) {
	name := "allowed"
	for _, s := range r.Hosts {
		if s.From != "" {
			out.print(lines(fmt.Sprintf("%-10s%s, by %s", name, s.Host, s.From)) + "\n")
			name = ""
		}
	}
	name = "traffic"
	for _, t := range r.Traffic {
		text := fmt.Sprintf("%-10s%s: %s, %s sent, %s received", name, t.Host, plural(int(t.Requests), "request", "requests"), size(t.Sent), size(t.Received))
		if t.Refused > 0 {
			text += fmt.Sprintf(", %d refused", t.Refused)
		}
		out.print(lines(text) + "\n")
		name = ""
	}
}
