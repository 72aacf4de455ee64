package llm

import "cmp"

// Encoder is a driver that asks a server, and can say what it would send.
type Encoder interface {
	// Encode returns the address and the body of a request, without sending it: no key is in them. The errors are those of Stream.
	Encode(req LLMRequest) (address string, body []byte, err error)
}

// Where the APIs answer, below the base address.
const (
	anthropicPath = "/v1/messages"
	openaiPath    = "/chat/completions"
	responsesPath = "/responses"
)

var (
	_ Encoder = (*AnthropicDriver)(nil)
	_ Encoder = (*OpenAIDriver)(nil)
	_ Encoder = (*ResponsesDriver)(nil)
)

// Encode implements Encoder.
func (d *AnthropicDriver) Encode(req LLMRequest) (address string, body []byte, err error) {
	return encoded(d.http, anthropicPath, req, d.encode)
}

// Encode implements Encoder.
func (d *OpenAIDriver) Encode(req LLMRequest) (address string, body []byte, err error) {
	return encoded(d.http, openaiPath, req, d.encode)
}

// Encode implements Encoder.
func (d *ResponsesDriver) Encode(req LLMRequest) (address string, body []byte, err error) {
	return encoded(d.http, responsesPath, req, func(req LLMRequest) ([]byte, error) { return d.encode(req, false) })
}

func encoded(c *httpClient, path string, req LLMRequest, encode func(LLMRequest) ([]byte, error)) (string, []byte, error) {
	if req.Model = cmp.Or(req.Model, c.cfg.Model); req.Model == "" {
		return "", nil, noModel(c.cfg.Name)
	}
	body, err := encode(req)
	return c.base + path, body, err
}
