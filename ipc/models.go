package ipc

// Models lists the models that are known.
var Models = Method[ModelsRequest, ModelsResponse]{Name: "models", Doc: "models lists the models that are known to each provider, with their windows, prices and abilities, and where each figure stands"}

// ModelsRequest asks for the models that a spawn from Cwd would see.
type ModelsRequest struct {
	ProjectRequest
	Provider string `json:"provider,omitempty"` // only those of this one
}

// ModelsResponse is the models. A provider takes others, too: these are the ones about which something stands in a file, in the environment or in the program.
type ModelsResponse struct {
	Models   []Model  `json:"models"`
	Problems []string `json:"problems,omitempty"` // of configuration files, file:line:column
}

// Model is a model of a provider.
type Model struct {
	Provider string `json:"provider"`
	Driver   string `json:"driver"`
	Model    string `json:"model"`   // empty = the provider chooses itself
	Default  bool   `json:"default"` // it is taken if a start names the provider alone
	Chosen   bool   `json:"chosen"`  // it is taken if a start names nothing
	Usable   bool   `json:"usable"`  // the provider can be used now

	Window        int    `json:"context_window"` // in tokens; 0 = not known
	WindowFrom    string `json:"context_window_from,omitempty"`
	MaxOutput     int    `json:"max_output"` // tokens of an answer, at most; 0 = not known
	MaxOutputFrom string `json:"max_output_from,omitempty"`

	Price     *ModelPrice `json:"price"` // null = not known
	PriceFrom string      `json:"price_from,omitempty"`

	Abilities ModelAbilities `json:"abilities"`
}

// ModelPrice is what a model costs, in USD per million tokens.
type ModelPrice struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	// Over are the prices of a whole request whose prompt has more than OverTokens tokens; null = there are none.
	Over       *ModelPrice `json:"over,omitempty"`
	OverTokens int         `json:"over_tokens,omitempty"`
}

// ModelAbilities are those of the way in which a provider is asked.
type ModelAbilities struct {
	Tools    string `json:"tools"`         // native, text (as JSON in its text), own (it runs tools of its own); empty = not known
	Streams  bool   `json:"streams"`       // text comes while the model writes it
	Effort   bool   `json:"effort"`        // it can be told how hard to think
	Thinking bool   `json:"thinking"`      // it can be told for how many tokens to think
	Thoughts bool   `json:"thoughts_kept"` // what was thought goes back to the model with its calls
	Cache    bool   `json:"prompt_cache"`  // the vendor is asked to keep the beginning of a prompt
	Bounded  bool   `json:"bounded"`       // the length of an answer can be bounded

	Images    bool `json:"images"`    // it is shown images; else it is told their names
	Documents bool `json:"documents"` // it is shown PDFs; else it is told their names
}
