package permit

import (
	"encoding/json"
	"slices"

	"rnix/internal/hosts"
)

// HostTool is the name of what commands do by their proxy, in rules, and HostPath stands where the path of a device stands: no device is there.
const (
	HostTool = "host"
	HostPath = "/net/host"
)

// HostCall is a connection of a command to a host (host:port), before it is made.
func HostCall(target string) Call {
	input, _ := json.Marshal(map[string]string{HostTool: target}) // it is text
	return Call{Tool: HostTool, Path: HostPath, Input: input}
}

// Host reports whether the call is a connection to a host.
func (c *Call) Host() bool { return c.Path == HostPath }

// HostRules returns rules that allow hosts, which are rules and presets of package hosts.
func HostRules(list []string) (rules []string) {
	for _, host := range list {
		rules = append(rules, HostTool+" "+host)
	}
	return rules
}

// Hosts returns the hosts that rules are about, as package hosts has them: all names, of a rule that names none.
func Hosts(rules []string) (list []string) {
	for _, text := range rules {
		r, err := Parse(text)
		switch {
		case err != nil || r.tool != HostTool:
		case r.pattern == "":
			list = append(list, "*")
		default:
			list = append(list, r.pattern)
		}
	}
	return list
}

// WebTool is the name of the tool that fetches pages, WebPath that of its device, and urlField what it fetches. Patterns about it are hosts, as package hosts has
// them.
const (
	WebTool  = "web_fetch"
	WebPath  = "/dev/web"
	urlField = "url"
)

// SearchTool is the name of the tool that asks a search engine, SearchPath that of its device, and queryField what it is asked. Rules name no pattern for it.
const (
	SearchTool = "web_search"
	SearchPath = WebPath + "/search"
	queryField = "query"
)

// WebCall is a fetch of a URL, before it is made.
func WebCall(url string) Call {
	input, _ := json.Marshal(map[string]string{urlField: url}) // it is text
	return Call{Tool: WebTool, Path: WebPath, Input: input}
}

// Web reports whether the call fetches a page.
func (c *Call) Web() bool { return c.Path == WebPath }

// target returns to which host a call leads that connects to one.
func (c *Call) target() (hosts.Target, error) {
	if c.Web() {
		_, to, err := hosts.ParseURL(c.field(urlField))
		return to, err
	}
	return hosts.ParseTarget(c.field(HostTool), 0)
}

// meansHost reports how sure it is that the rule is about the host of a call, at whatever port if it names none: what is to be asked about or refused is more than
// what is allowed by the same words. A pattern that is no host, as one of a rule about all tools can be, may be about anything.
func (r Rule) meansHost(c *Call) Sure {
	to, err := c.target()
	if err != nil || r.pattern == "*" {
		return Yes
	}
	rules, err := hosts.ParseAll([]string{r.pattern})
	switch {
	case err != nil:
		return Maybe
	case slices.ContainsFunc(rules, func(h hosts.Rule) bool { return h.Matches(to) || h.Web() && h.MatchesHost(to) }):
		return Yes
	}
	return No
}

// coversHost reports whether the rule is about the host of a call, at its port.
func (r Rule) coversHost(c *Call) bool {
	to, err := c.target()
	rules, bad := hosts.ParseAll([]string{r.pattern})
	if err != nil || bad != nil {
		return false
	}
	_, ok := rules.Match(to)
	return ok
}
