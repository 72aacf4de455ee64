package kernel

import (
	"sync"

	"rnix/vfs"
)

// counts is what providers have counted of prompts: how many tokens a byte has, for each model. It bounds the next
// prompts, which are reserved before they are sent. The zero value is ready to be used.
type counts struct {
	mu sync.Mutex // leaf
	// +checklocks:mu
	models map[modelKey]float64
}

type modelKey struct{ provider, model string }

// uncounted is how many tokens a byte of a prompt counts as before a provider has counted one: more than in any text
// but random one.
const uncounted = 0.5

// countRoom is by how much the next prompts of a model may have more tokens in a byte than those before.
const countRoom = 1.25

// The bounds of what is believed of a count, and how many models are kept.
const (
	leastPerByte, mostPerByte = 0.15, 4
	maxCounted                = 1000
)

// perByte estimates how many tokens a byte has, at most, if one of models answers. known is false if one of them has
// never counted.
func (c *counts) perByte(models []vfs.ModelName) (tokens float64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known = true
	for _, m := range models {
		n, ok := c.models[modelKey{m.Provider, m.Model}]
		if n *= countRoom; !ok {
			n, known = uncounted, false
		}
		tokens = max(tokens, n)
	}
	return tokens, known
}

// add takes a count. More tokens than before are believed at once, fewer bit by bit.
func (c *counts) add(m vfs.ModelName, bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	n := min(max(float64(tokens)/float64(bytes), leastPerByte), mostPerByte)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := modelKey{m.Provider, m.Model}
	was, ok := c.models[key]
	if ok {
		n = max(n, 0.75*was+0.25*n)
	}
	if c.models == nil || !ok && len(c.models) >= maxCounted {
		c.models = map[modelKey]float64{}
	}
	c.models[key] = n
}

// answererOf returns which of models has answered: that of the provider, or the first one.
func answererOf(models []vfs.ModelName, provider string) vfs.ModelName {
	for _, m := range models {
		if provider != "" && m.Provider == provider {
			return m
		}
	}
	return models[0]
}
