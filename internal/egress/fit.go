package egress

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rnix/internal/hosts"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
)

// Fit gives a box whose network is of hosts its proxy, for what c says but for its rules, and has programs in it use that: the box must have its environment. A box
// with another network stays as it is.
func Fit(box *proc.Box, p *Proxy, c Client) error {
	if box.Plan.Rung == sandbox.RungNone || box.Plan.Policy.Net != sandbox.NetHosts {
		return nil
	}
	rules, err := hosts.ParseAll(box.Plan.Policy.Hosts)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var all []sandbox.Refusal
	tell := c.Refused
	c.Rules, c.Refused = rules, func(r sandbox.Refusal) {
		mu.Lock()
		all = append(all, r)
		mu.Unlock()
		if tell != nil {
			tell(r)
		}
	}
	box.Inner = append(box.Inner, proc.Inner{Port: sandbox.Proxy, Serve: func(l net.Listener) {
		p.Serve(l, &c)
		if c.End != nil {
			c.End()
		}
	}})
	box.Refused = func() []sandbox.Refusal {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
	box.Env = environ(box.Env)
	return nil
}

// environ returns an environment whose programs use the proxy of their box, and no other.
func environ(env []string) []string {
	const direct = "127.0.0.1,localhost,::1"
	proxy := "http://127.0.0.1:" + strconv.Itoa(sandbox.Proxy)
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasSuffix(strings.ToUpper(name), "_PROXY")
	})
	for _, kv := range []string{"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy, "NO_PROXY=" + direct} {
		name, value, _ := strings.Cut(kv, "=")
		env = append(env, kv, strings.ToLower(name)+"="+value) // programs know them in one case or the other
	}
	return append(env, "NODE_USE_ENV_PROXY=1") // Node's own requests obey them only then
}
