package llm

// Abilities are what a way to ask models can do. Tests compare them with what stand-ins of the vendors' servers see (docs/guides/abilities.md).
type Abilities struct {
	Tools    string `json:"tools"`         // ToolsNative, ToolsText or ToolsOwn; empty = not known
	Streams  bool   `json:"streams"`       // text comes while the model writes it
	Effort   bool   `json:"effort"`        // it can be told how hard to think
	Thinking bool   `json:"thinking"`      // it can be told for how many tokens to think
	Thoughts bool   `json:"thoughts_kept"` // what was thought goes back to the model with its calls
	Cache    bool   `json:"prompt_cache"`  // the driver asks the vendor to keep the beginning of a prompt, or names the conversation to its cache
	Bounded  bool   `json:"bounded"`       // the length of an answer can be bounded
	// It is shown images, and documents (PDF); else it is told their names.
	Images    bool `json:"images"`
	Documents bool `json:"documents"`
}

// How a model calls tools.
const (
	ToolsNative = "native" // in the form of the vendor's API
	ToolsText   = "text"   // as JSON in its text
	ToolsOwn    = "own"    // it runs tools of its own
)
