package trace

// Names of spans and attributes in what is exported, after the conventions of OpenTelemetry for generative AI.
// These are not stable yet; all that is taken from them stands here.
const (
	attrOperation    = "gen_ai.operation.name"
	attrProvider     = "gen_ai.provider.name"
	attrAgentName    = "gen_ai.agent.name"
	attrAgentID      = "gen_ai.agent.id"
	attrWorkflow     = "gen_ai.workflow.name"
	attrConversation = "gen_ai.conversation.id"
	attrRequestModel = "gen_ai.request.model"
	attrReplyModel   = "gen_ai.response.model"
	attrFinish       = "gen_ai.response.finish_reasons"
	attrInputTokens  = "gen_ai.usage.input_tokens" // with those of the cache
	attrOutputTokens = "gen_ai.usage.output_tokens"
	attrCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	attrCacheWrite   = "gen_ai.usage.cache_creation.input_tokens"
	attrToolName     = "gen_ai.tool.name"
	attrToolCall     = "gen_ai.tool.call.id"
	attrToolInput    = "gen_ai.tool.call.arguments" // content
	attrToolOutput   = "gen_ai.tool.call.result"    // content
	attrPrompt       = "gen_ai.input.messages"      // content
	attrAnswer       = "gen_ai.output.messages"     // content
	attrError        = "error.type"
	attrProcessExit  = "process.exit.code" // of a command

	opAgent    = "invoke_agent"
	opWorkflow = "invoke_workflow"
	opChat     = "chat"
	opTool     = "execute_tool"

	errorOther   = "_OTHER"
	errorTimeout = "timeout"

	attrService = "service.name"
	attrVersion = "service.version"
)

// Names of our own.
const (
	attrKind       = "rnix.kind"
	attrPID        = "rnix.pid"
	attrName       = "rnix.name" // of the process
	attrStep       = "rnix.step"
	attrRun        = "rnix.run"
	attrRuns       = "rnix.runs"
	attrOpen       = "rnix.open"
	attrIdle       = "rnix.idle_ns"
	attrCritical   = "rnix.critical_path_ns"
	attrCost       = "rnix.cost_usd"
	attrEstimated  = "rnix.tokens_estimated"
	attrVerdict    = "rnix.verdict"
	attrAttempt    = "rnix.attempt"
	attrEffect     = "rnix.effect"
	attrPath       = "rnix.path"
	attrBackground = "rnix.background"
	attrBody       = "rnix.body"
	attrExitCode   = "rnix.exit_code"
	attrExitReason = "rnix.exit_reason"
	attrIntent     = "rnix.intent" // content
	attrResult     = "rnix.result" // content

	opStep = "step"
	opWait = "wait"
)
