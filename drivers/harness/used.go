package harness

import (
	"rnix/agent"
	"rnix/drivers/llm"
)

func usageOf(e *agent.UsageEvent) llm.Usage {
	return llm.Usage{Input: e.Input, Output: e.Output, CacheRead: e.CacheRead, CacheWrite: e.CacheWrite}
}

func add(to *llm.Usage, u llm.Usage) {
	to.Input, to.Output, to.CacheRead, to.CacheWrite = to.Input+u.Input, to.Output+u.Output, to.CacheRead+u.CacheRead, to.CacheWrite+u.CacheWrite
}

// rest returns what a turn has used beyond what was counted of it.
func rest(total, counted llm.Usage) llm.Usage {
	return llm.Usage{Input: max(total.Input-counted.Input, 0), Output: max(total.Output-counted.Output, 0),
		CacheRead: max(total.CacheRead-counted.CacheRead, 0), CacheWrite: max(total.CacheWrite-counted.CacheWrite, 0)}
}

func sum(a, b llm.Usage) llm.Usage {
	add(&a, b)
	return a
}
