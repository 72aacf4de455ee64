package embed

import (
	"maps"
	"slices"
	"strings"

	"rnix/drivers/llm"
	"rnix/types"
	"rnix/vfs"
)

// models is the device /dev/llm: one file for each model, and for each with another one behind it.
type models map[string]llm.LLMDriver

func newModels(drivers []llm.LLMDriver) models {
	m := models{}
	for _, d := range drivers {
		m[d.Info().Name] = d
	}
	return m
}

// open opens <name>, or <name>/fallback/<name>[/<model>].
func (m models) open(path string, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	name, rest, _ := strings.Cut(strings.Trim(path, "/"), "/")
	d, err := m.named(name)
	if err != nil {
		return nil, err
	}
	if rest != "" {
		second, model, _ := strings.Cut(strings.TrimPrefix(rest, "fallback/"), "/")
		if !strings.HasPrefix(rest, "fallback/") || second == "" {
			return nil, types.Errorf(types.ErrNotFound, "Open", "", "a model has no files below it but fallback/<name>[/<model>]")
		}
		other, err := m.named(second)
		if err != nil {
			return nil, err
		}
		d = llm.NewFallback(d, other, model)
	}
	return llm.NewDevice(d)("", flags)
}

func (m models) named(name string) (llm.LLMDriver, error) {
	if d, ok := m[name]; ok {
		return d, nil
	}
	return nil, types.Errorf(types.ErrNotFound, "Open", "", "there is no model %q here; there is %s", name, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
}
