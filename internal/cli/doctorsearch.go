package cli

import (
	"rnix/internal/config"
	"rnix/runtime/statehome"
)

// checkSearch says which search engine agents may ask, and whether its key is there; nothing if none is named.
func checkSearch(a *app) []check {
	dir, err := statehome.ConfigDir(a.env)
	if err != nil {
		return nil // another check says so
	}
	c := config.Load(config.Sources{UserDir: dir, Home: a.getenv("HOME"), Lookup: config.Lookup(a.env)})
	e := &c.Search
	if e.Engine.V == "" {
		return nil
	}
	out := check{"search", fine, "web_search asks " + e.Engine.V + " at " + e.URL.V, ""}
	name, file := e.Keyed.APIKeyEnv, e.Keyed.APIKeyFile
	switch {
	case name == "":
	case a.getenv(name) != "":
		out.Detail += "; " + name + " is set"
	case file != "":
		if _, err := config.ReadKey(file); err != nil {
			return []check{{"search", warned, out.Detail + "; " + err.Error(), "put the key there, or set " + name}}
		}
		out.Detail += "; its key is in " + file
	case len(e.Keyed.APIKeyCommand) > 0:
		out.Detail += "; its key is printed by " + e.Keyed.APIKeyCommand[0]
	default:
		return []check{{"search", warned, out.Detail + "; " + name + " is not set", "export " + name + ", or set api_key_file under web.search in config.yaml"}}
	}
	return []check{out}
}
