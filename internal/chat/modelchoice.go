package chat

import (
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/internal/yamlfile"
	"rnix/ipc"
)

// nearModels is how many models are named at most in the place of one that is not known.
const nearModels = 4

// chooseModel has the next message go to a model. One that is not known is taken when it is said a second time: no server is asked for its list.
func chooseModel(m *Model, name string) tea.Cmd {
	if m.doubted == name {
		takeModel(m, name)
		return nil
	}
	sp := &m.o.Spawn
	req := ipc.ModelsRequest{ProjectRequest: ipc.ProjectRequest{Cwd: sp.Cwd, Env: m.o.Environ, TrustProject: sp.TrustProject}}
	return call(m, ipc.Models, req, func(m *Model, r ipc.ModelsResponse, err error) tea.Cmd {
		if err != nil {
			return m.fail(err)
		}
		why := doubt(name, m.detail.Provider, r.Models)
		if why == "" {
			takeModel(m, name)
			return nil
		}
		m.doubted = name
		m.note, m.bad = tui.Line(m.t, why), true
		return nil
	})
}

func takeModel(m *Model, name string) {
	m.doubted, m.next.model = "", name
	text := "your next message goes to "
	if m.phase == working {
		text = "your next message after the end of this run goes to "
	}
	m.reply(text + name)
}

// doubt says why a model cannot be meant, and which may be; "" if it is known and can be used. A name without a provider is one of the provider that a
// process has, "" before there is one.
func doubt(name, provider string, known []ipc.Model) string {
	if provider == "" {
		if i := slices.IndexFunc(known, func(k ipc.Model) bool { return k.Chosen }); i >= 0 {
			provider = known[i].Provider
		}
	}
	var usable, close []string
	for i := range known {
		k := &known[i]
		whole := k.Provider + "/" + k.Model
		if name == whole || name == k.Model && k.Provider == provider {
			if k.Usable {
				return ""
			}
			return "the provider " + k.Provider + " cannot be used now (see: rnix providers)"
		}
		if !k.Usable || k.Model == "" {
			continue
		}
		usable = append(usable, whole)
		if strings.Contains(whole, name) || name == k.Model {
			close = append(close, whole)
		}
	}
	if len(known) == 0 {
		return ""
	}
	bare := make([]string, len(usable))
	for i, whole := range usable {
		_, bare[i], _ = strings.Cut(whole, "/")
	}
	if n := yamlfile.Nearest(name, bare); n != "" {
		close = append(close, usable[slices.Index(bare, n)])
	}
	if n := yamlfile.Nearest(name, usable); n != "" {
		close = append(close, n)
	}
	slices.Sort(close)
	close = slices.Compact(close)
	text := "unknown model " + name
	switch {
	case len(close) > 0:
		text += "; did you mean " + strings.Join(close[:min(len(close), nearModels)], " or ") + "?"
	case len(usable) > 0:
		text += "; known are " + strings.Join(usable[:min(len(usable), nearModels)], ", ")
		if n := len(usable) - nearModels; n > 0 {
			text += " and " + strconv.Itoa(n) + " more"
		}
		text += " (see: rnix models)."
	default:
		text += " (see: rnix models)."
	}
	return text + " Say it again to take it all the same."
}
