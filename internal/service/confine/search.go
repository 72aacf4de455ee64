package confine

import (
	"rnix/drivers/web"
	"rnix/internal/hosts"
	"rnix/internal/permit"
	"rnix/internal/profile"
	"rnix/internal/sandbox"
)

// Engine returns the search engine of a process, or of a person, with this vfs.Caller.Profile, as web.Options.Engine.
func Engine(p any) (web.Engine, bool) {
	of, ok := p.(*profile.Profile)
	if !ok || of.Config.Search.Engine.V == "" {
		return web.Engine{}, false
	}
	e := &of.Config.Search
	return web.Engine{Kind: e.Engine.V, URL: e.URL.V, Key: e.Keyed.APIKeyEnv, Refused: func(key string) (again bool) {
		again, _ = profile.KeyRefused(of, e.Keyed.APIKeyEnv, key)
		return again
	}}, true
}

// engineRules returns rules that name where the engine is which Engine returns.
func engineRules(p any) (hosts.Rules, bool) {
	e, ok := Engine(p)
	if !ok {
		return nil, false
	}
	_, to, err := hosts.ParseURL(e.URL)
	if err != nil {
		return nil, false
	}
	rules, err := hosts.ParseAll([]string{to.String()})
	return rules, err == nil
}

// Searches reports whether a process with this vfs.Caller.Profile is offered searches: it has an engine, and its network leads there, or a person is asked whether it may.
func Searches(p any) bool {
	of, ok := p.(*profile.Profile)
	e, has := Engine(p)
	if !ok || !has {
		return false
	}
	_, to, err := hosts.ParseURL(e.URL)
	if err != nil {
		return false
	}
	switch net := netOf(of); net.Net {
	case sandbox.NetNone:
		return false
	case sandbox.NetOpen:
		return true
	default:
		_, named := hosts.RulesOf(net.Hosts).Match(to)
		call := permit.HostCall(to.String())
		return named || of.Permissions.Judge(&call).Decision == permit.Ask
	}
}
