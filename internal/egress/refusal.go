package egress

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"rnix/internal/hosts"
	"rnix/internal/sandbox"
)

// refusal is why a client does not get to a host.
type refusal struct {
	sandbox.Refusal
	kind   string // which reason it is, to tell refusals apart
	host   string // host:port; empty = it is not about one
	status int    // of HTTP
}

// Error returns what the client is told.
func (r *refusal) Error() string { return r.Text() }

func refused(kind string, status int, to hosts.Target, advice, format string, args ...any) *refusal {
	return &refusal{sandbox.Refusal{Wanted: sandbox.WantedNet, Target: to.String(), Why: fmt.Sprintf(format, args...), Advice: advice}, kind, to.String(), status}
}

// notAllowed is the refusal of a host that no rule names, or that somebody has refused.
func notAllowed(who string, to hosts.Target, why string, rules hosts.Rules) *refusal {
	if why == "" {
		why = fmt.Sprintf("the sandbox does not let %s reach %s, which is not among the allowed hosts: %s", who, to, list(rules))
	}
	return refused("rule", 403, to, sandbox.AllowHost(to.String()), "%s", why)
}

// list returns the first of the hosts that are allowed.
func list(rules hosts.Rules) string {
	const most = 6
	names := rules.Strings()
	if len(names) == 0 {
		return "there are none"
	}
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}

// private is the refusal of an address that is not public.
func private(who string, to hosts.Target, ip netip.Addr, what string) *refusal {
	name := to
	name.Name, name.Addr = ip.String(), ip
	leads := fmt.Sprintf("%s, which is %s", to, what)
	if !to.Addr.IsValid() {
		leads = fmt.Sprintf("%s, which leads to %s, %s", to, ip, what)
	}
	return refused("private", 403, to, "a person can name the address itself, with --allow-host "+name.String(), "the sandbox does not let %s reach %s", who, leads)
}

// wrong is the refusal of a request that is none of a proxy.
func wrong(format string, args ...any) *refusal {
	why := "the proxy of the sandbox does not take this request: " + fmt.Sprintf(format, args...)
	return &refusal{sandbox.Refusal{Wanted: sandbox.WantedNet, Why: why, Advice: "the program is to use HTTP or CONNECT"}, "request", "", 400}
}

// full is the refusal of more connections than there may be.
func full() *refusal {
	why := fmt.Sprintf("the proxy of the sandbox has %d connections of this command, and no more at once", maxConns)
	return &refusal{sandbox.Refusal{Wanted: sandbox.WantedNet, Why: why, Advice: "the program is to open fewer"}, "full", "", 503}
}

// crowded is the refusal of more connections than all commands may have together.
func crowded(most int64) *refusal {
	why := fmt.Sprintf("the proxy of the sandbox has %d connections of all commands together, and no more at once", most)
	return &refusal{sandbox.Refusal{Wanted: sandbox.WantedNet, Why: why, Advice: "the program is to try again when others have ended theirs"}, "crowded", "", 503}
}
