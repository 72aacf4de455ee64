package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// Encoder makes requests as they go to vendors. *catalog.Service is one.
type Encoder interface {
	// Encode returns where a request to a provider goes, and its body, as a client's configuration has it. INVALID: the provider is no server.
	Encode(r *ipc.ProjectRequest, provider string, req llm.LLMRequest) (address string, body []byte, err error)
}

// rawShown is how many bytes of an image or a PDF a request shows that is made anew; three make four letters of base64.
const rawShown = 48

// requests makes requests of models anew.
type requests struct {
	past    func(ctx context.Context, peer *ipc.Peer, op, text string) (*past, error)
	journal Journal
	encoder Encoder
}

// raw makes the request of a step anew.
func (d requests) raw(ctx context.Context, peer *ipc.Peer, req ipc.RawStepRequest) (ipc.RawStepResponse, error) {
	p, err := d.past(ctx, peer, "raw_step", req.Target)
	if err != nil {
		return ipc.RawStepResponse{}, err
	}
	rec, err := p.h.Step(req.Step)
	if err != nil {
		return ipc.RawStepResponse{}, err
	}
	said, at := answerOf(p.h, req.Step)
	if said == nil || rec.Provider == "" {
		return ipc.RawStepResponse{}, types.Errorf(types.ErrNotFound, "raw_step", req.Target, "step %d has no answer of a model on record", req.Step)
	}
	q, notes, err := d.questionOf(p, &rec, at)
	if err != nil {
		return ipc.RawStepResponse{}, err
	}
	r := ipc.RawStepResponse{PID: p.PID, UUID: p.UUID, Step: req.Step, Provider: rec.Provider, Model: rec.Model, Notes: notes}
	address, body, err := d.encoder.Encode(&req.ProjectRequest, rec.Provider, q)
	if err != nil {
		return ipc.RawStepResponse{}, err
	}
	message, err := json.Marshal(said)
	if err != nil {
		return ipc.RawStepResponse{}, types.Errorf(types.ErrInternal, "raw_step", req.Target, "encode: %w", err)
	}
	r.Address, r.Request, r.Answer = address, body, ipc.RawAnswer{Answer: *wireAnswer(rec.Answer()), Message: message}
	return r, nil
}

// answerOf returns the answer of a step, and which record it is; nil if there is none. Of a step that was asked twice it is the later one.
func answerOf(h *step.History, n int) (*rnixctx.Message, int) {
	for i, r := range slices.Backward(h.Records) {
		if r.Kind == step.KindMessage && r.Answer != nil && r.Answer.Step == n {
			return r.Message, i
		}
	}
	return nil, 0
}

// questionOf returns what a model was asked in a step, as far as the record says it, and what that does not say. at is the record of the answer.
func (d requests) questionOf(p *past, rec *step.StepRecord, at int) (llm.LLMRequest, []string, error) {
	notes := []string{"made anew of the record by the driver, with the configuration as it is now: the bytes that were sent are kept nowhere"}
	meta, err := d.journal.Blobs().Meta(p.UUID)
	if err != nil {
		return llm.LLMRequest{}, nil, types.Errorf(types.ErrNotFound, "raw_step", p.UUID.String(), "process-meta.json, which has the tools, cannot be read: %w", err)
	}
	life := new(step.Life)
	for i := range p.h.Records[:at] {
		life.Apply(&p.h.Records[i])
	}
	whole := p.h.Life()
	if life.Runs != whole.Runs || len(life.Skills) != len(whole.Skills) {
		notes = append(notes, "instructions and tools are those with which the last run began; this step is of an earlier one, or other skills are active since")
	} else if len(life.Skills) > 0 {
		notes = append(notes, "the instructions of skills that were activated during the run are left out")
	}
	was, err := whole.Was()
	if err != nil {
		notes = append(notes, "the record does not say with which effort the model was asked")
	}
	q := llm.LLMRequest{Intent: was.Intent, SystemPrompt: meta.SystemPrompt, Model: cmp.Or(was.Model, rec.Model), MaxTurns: 1, Effort: was.Effort, Session: p.UUID.String(), Messages: rec.Messages}
	if life.Limit != nil || was.ContextBudget > 0 || was.BudgetUSD > 0 {
		notes = append(notes, "the bound of the answer that the budget allowed is not on record")
	}
	if len(rnixctx.AttachmentsIn(q.Messages)) > 0 {
		notes = append(notes, fmt.Sprintf("of the data of each image and PDF only the first %d bytes are shown, in base64", rawShown))
		q.Attachment = func(a rnixctx.Attachment) ([]byte, error) {
			data, err := d.journal.Blobs().Attachment(p.UUID, a.SHA256)
			return data[:min(len(data), rawShown)], err
		}
	}
	for _, t := range meta.Tools {
		q.Tools = append(q.Tools, llm.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return q, notes, nil
}
