package weigh

import (
	"slices"
	"sync"
)

// Model is one whose counts are kept together: those of another differ.
type Model struct{ Provider, Name string }

// Counts is what providers have counted of prompts: how many tokens a byte has, for each model. It bounds the next
// prompts, which are reserved before they are sent. The zero value is ready to be used. Safe for concurrent use.
type Counts struct {
	mu sync.Mutex // leaf
	// +checklocks:mu
	models map[Model]float64
	// +checklocks:mu
	prompts []prompt // whose parts were counted, the latest last
}

// prompt is one of which a provider has counted the tokens.
type prompt struct {
	model  Model
	parts  map[uint64]int // how often it has each
	tokens int
}

// maxPrompts is how many prompts are kept, of all models, and maxPromptParts how many parts one may have for that.
const (
	maxPrompts     = 256
	maxPromptParts = 4096
)

// Most returns how many tokens a prompt of these parts has at most for a model: by the prompt that was counted to which the least was added.
func (c *Counts) Most(m Model, parts []Part) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	least, before := 0, make([]int, len(parts)) // how often a part comes before
	seen := make(map[uint64]int, len(parts))
	for i, p := range parts {
		least += p.Most
		before[i] = seen[p.Sum]
		seen[p.Sum]++
	}
	for _, known := range slices.Backward(c.prompts) {
		if known.model != m {
			continue
		}
		n := known.tokens
		for i := 0; i < len(parts) && n < least; i++ {
			if before[i] >= known.parts[parts[i].Sum] {
				n += parts[i].Most
			}
		}
		least = min(least, n)
	}
	return least
}

// Learn keeps how many tokens a prompt of these parts has, by the count of its vendor.
func (c *Counts) Learn(m Model, parts []Part, tokens int) {
	if len(parts) == 0 || len(parts) > maxPromptParts {
		return
	}
	p := prompt{m, make(map[uint64]int, len(parts)), tokens}
	for _, part := range parts {
		p.parts[part.Sum]++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.prompts = append(c.prompts, p); len(c.prompts) > maxPrompts {
		c.prompts = slices.Delete(c.prompts, 0, 1)
	}
}

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

// PerByte estimates how many tokens a byte has, at most, if one of models answers. known is false if one of them has
// never counted.
func (c *Counts) PerByte(models []Model) (tokens float64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known = true
	for _, m := range models {
		n, ok := c.models[m]
		if n *= countRoom; !ok {
			n, known = uncounted, false
		}
		tokens = max(tokens, n)
	}
	return tokens, known
}

// Add takes a count. More tokens than before are believed at once, fewer bit by bit.
func (c *Counts) Add(m Model, bytes, tokens int) {
	if bytes <= 0 || tokens <= 0 {
		return
	}
	n := min(max(float64(tokens)/float64(bytes), leastPerByte), mostPerByte)
	c.mu.Lock()
	defer c.mu.Unlock()
	was, ok := c.models[m]
	if ok {
		n = max(n, 0.75*was+0.25*n)
	}
	if c.models == nil || !ok && len(c.models) >= maxCounted {
		c.models = map[Model]float64{}
	}
	c.models[m] = n
}
