package llm

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"rnix/types"
	"rnix/vfs"
)

// Fallback asks a second model when the first cannot answer: AUTH, UNAVAILABLE, TIMEOUT, or a rate
// limit that the first does not wait for. The response says who answered. It is put around two
// Retries, never inside one.
type Fallback struct {
	first, second LLMDriver
	model         string // of the second; empty = its default
}

// NewFallback returns the two drivers as one. model is what the second is asked for; empty means its
// default. It does not matter how each of them calls tools: all drivers answer with ToolCalls.
func NewFallback(first, second LLMDriver, model string) *Fallback {
	return &Fallback{first, second, model}
}

// Info describes the first driver, with the smaller of the two context windows.
func (f *Fallback) Info() DriverInfo {
	info := f.first.Info()
	if w := f.second.Info().ContextWindow; w > 0 && (info.ContextWindow == 0 || w < info.ContextWindow) {
		info.ContextWindow = w
	}
	return f.bounds(info)
}

// bounds are those that hold whoever answers.
func (f *Fallback) bounds(info DriverInfo) DriverInfo {
	other := f.second.Info()
	if info.MaxAnswer = max(info.MaxAnswer, other.MaxAnswer); f.first.Info().MaxAnswer == 0 || other.MaxAnswer == 0 {
		info.MaxAnswer = 0
	}
	info.ExtraAnswer, info.LeastAnswer = max(info.ExtraAnswer, other.ExtraAnswer), max(info.LeastAnswer, other.LeastAnswer)
	if other.Free != info.Free && info.MaxAnswer == 0 { // the one that is not free bounds both
		info.MaxAnswer = max(f.first.Info().MaxAnswer, other.MaxAnswer)
	}
	info.Free, info.SaysCost, info.Aside = info.Free && other.Free, info.SaysCost && other.SaysCost, info.Aside && other.Aside
	info.Acts = info.Acts || other.Acts
	info.Others = append(slices.Clip(info.Others), vfs.ModelName{Provider: other.Name, Driver: other.Driver, Model: cmp.Or(f.model, other.Model)})
	info.Others = append(info.Others, other.Others...)
	return info
}

// Call performs one completion.
func (f *Fallback) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, f, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (f *Fallback) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		resp, err := attempt(ctx, f.first, req, emit)
		if err == nil || ctx.Err() != nil || !exhausted(err) {
			return answeredBy(resp, f.first), err
		}
		name := f.second.Info().Name
		emit(StreamEvent{Type: EventReasoning, Text: "\n[" + f.first.Info().Name + " cannot answer (" + types.CodeOf(err).Error() + "); asking " + name + "]\n"})
		req.Model = f.model
		resp, err2 := attempt(ctx, f.second, req, emit)
		if err2 == nil {
			return answeredBy(resp, f.second), nil
		}
		if ctx.Err() != nil {
			return nil, err2
		}
		return nil, bothFailed(f.first.Info().Name, err, name, err2)
	}), nil
}

func exhausted(err error) bool {
	switch types.CodeOf(err) {
	case types.ErrAuth, types.ErrUnavailable, types.ErrTimeout, types.ErrRateLimited, types.ErrNotFound:
		return true
	}
	return false
}

func answeredBy(resp *LLMResponse, d LLMDriver) *LLMResponse {
	if resp != nil && resp.Provider == "" {
		named := *resp
		named.Provider = d.Info().Name
		return &named
	}
	return resp
}

// bothFailed has the code of the failure that is most likely to pass: that is what the caller can wait
// for. Both are in its chain.
func bothFailed(name1 string, err1 error, name2 string, err2 error) error {
	code := types.CodeOf(err2)
	for _, hopeful := range []types.ErrCode{types.ErrTimeout, types.ErrUnavailable, types.ErrRateLimited} {
		if types.CodeOf(err1) == hopeful || types.CodeOf(err2) == hopeful {
			code = hopeful
		}
	}
	return types.Errorf(code, "Call", "", "no provider can answer: %w", errors.Join(named(name1, err1), named(name2, err2)))
}

// named puts a provider's name before an error that does not begin with it.
func named(name string, err error) error {
	var e *types.SyscallError
	if errors.As(err, &e) && e.Device == name {
		return err
	}
	return types.Errorf(types.CodeOf(err), "", name, "%w", err)
}
