package histories

import (
	rnixctx "rnix/context"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/trace"
	"rnix/ipc"
)

// What stands in records, on the wire. A conversion of a whole struct does not compile when one side has got another field.

func wireLedgerEntry(e *step.LedgerEntry) ipc.LedgerEntry { return ipc.LedgerEntry(*e) }

func wireSpan(s *trace.Span) ipc.Span { return ipc.Span(*s) }

func wirePart(p *trace.Part) ipc.PathPart { return ipc.PathPart(*p) }

func wireBlame(b *trace.Blame) ipc.Blame { return ipc.Blame(*b) }

func wireStep(s *step.StepRecord) ipc.StepRecord {
	return ipc.StepRecord{StepNumber: s.StepNumber, Timestamp: s.Timestamp, Messages: service.Each(s.Messages, wirePrompted), MessageCount: s.MessageCount,
		TokensUsed: s.TokensUsed, RawResponse: s.RawResponse, Action: s.Action, Summary: s.Summary, ToolPath: s.ToolPath, ToolInput: s.ToolInput,
		ToolResult: s.ToolResult, ToolError: s.ToolError, ToolCalls: service.Each(s.ToolCalls, wireCall), FailedCalls: s.FailedCalls, Duration: s.Duration, ModelTime: s.ModelTime,
		Provider: s.Provider, Model: s.Model, StopReason: s.StopReason, Input: s.Input, Output: s.Output, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite,
		Estimated: s.Estimated, CostUSD: s.CostUSD, CostFrom: s.CostFrom, Metered: s.Metered, Error: s.Error, Files: (*ipc.FilesSnapshot)(s.Files), End: (*ipc.StepEnding)(s.End)}
}

func wireAnswer(a *step.Answer) *ipc.StepAnswer { return (*ipc.StepAnswer)(a) }

func wireCall(c *step.Call) ipc.StepCall { return ipc.StepCall(*c) }

func wirePrompted(m *rnixctx.Message) ipc.StepMessage {
	return ipc.StepMessage{Role: string(m.Role), Content: m.Content, ToolCallID: m.ToolCallID, IsError: m.IsError,
		ToolCalls: service.Each(m.ToolCalls, wireToolCall), Reasoning: service.Each(m.Reasoning, wireBlock), Attachments: service.Each(m.Attachments, wireAttached)}
}

func wireAttached(a *rnixctx.Attachment) ipc.Attached { return ipc.Attached(*a) }

func wireToolCall(c *rnixctx.ToolCall) ipc.StepMessageCall { return ipc.StepMessageCall(*c) }

func wireBlock(b *rnixctx.Block) ipc.StepBlock { return ipc.StepBlock(*b) }

func wireProfile(p *step.Profile) ipc.Profile {
	return ipc.Profile{V: p.V, UUID: p.UUID, Time: p.Time, Steps: p.Steps, Step: p.Step, Tokens: p.Tokens, Estimated: p.Estimated, Sent: p.Sent,
		Provider: p.Provider, Model: p.Model, Uncounted: p.Uncounted, Sections: service.Each(p.Sections, wireSection), Segments: service.Each(p.Segments, wireSegment),
		Prompts: service.Each(p.Prompts, wirePrompt), Compactions: p.Compactions, Window: ipc.ContextWindow(p.Window), Cache: ipc.ContextCache(p.Cache),
		Missing: p.Missing, Shown: p.Shown, Dropped: p.Dropped}
}

func wireSection(s *step.Section) ipc.ContextSection { return ipc.ContextSection(*s) }

func wireSegment(s *step.Segment) ipc.ContextSegment {
	return ipc.ContextSegment{Seq: s.Seq, Role: string(s.Role), Tool: s.Tool, Tokens: s.Tokens, Prompts: s.Prompts, FirstStep: s.FirstStep, LastStep: s.LastStep,
		Dropped: s.Dropped, N: s.N, Section: s.Section, Name: s.Name, Bytes: s.Bytes, Counted: s.Counted, Preview: s.Preview}
}

func wirePrompt(p *step.PromptSize) ipc.ContextPrompt {
	return ipc.ContextPrompt{Step: p.Step, Messages: p.Messages, Tokens: p.Tokens, Estimated: p.Estimated, Added: p.Added, Output: p.Output,
		CacheRead: p.CacheRead, CacheWrite: p.CacheWrite, Stable: p.Stable, Broke: (*ipc.ContextBreak)(p.Broke), Compacted: p.Compacted}
}
