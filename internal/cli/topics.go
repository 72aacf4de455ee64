package cli

import (
	"github.com/spf13/cobra"

	"rnix/internal/config"
)

// topics are the entries of the help that are no commands.
func topics() []entry {
	topic := func(name, short string, long func() string) entry {
		return entry{name, "", func(*app) *cobra.Command { return &cobra.Command{Use: name, Short: short, Long: long()} }}
	}
	text := func(s string) func() string { return func() string { return s } }
	return []entry{
		topic("exit-codes", "the exit codes of all commands", exitCodesHelp),
		topic("environment", "the environment variables", text(environmentHelp)),
		topic("config.yaml", "the file with limits and defaults: place, example, keys", text(config.ConfigHelp)),
		topic("providers.yaml", "the file with model providers: place, example, keys", text(config.ProvidersHelp)),
		topic("replay-files", "files that script a model, for tests: place, example, keys", text(replayHelp)),
	}
}

// The examples of the help about replay files.
const (
	replayExample = `version: "1"
responses:
  - content: Let me look.
    tool_calls:
      - {name: read_file, input: {path: README.md}}
    usage: {input_tokens: 120, output_tokens: 15}
  - error: {code: RATE_LIMITED, message: slow down, retry_after: 2s}
  - content: It is a project.
    delay: 200ms
`
	conversationsExample = `version: "1"
conversations:
  - prompt: 'Read (\S+)'
    responses:
      - tool_calls: [{name: read_file, input: {path: "${1}"}}]
      - content: "It says: ${result}"
  - responses:
      - content: Done.
`
)

const replayHelp = `A replay file has the answers of a model that is none: agents call real tools, and what they say is known
before. It is for tests and demonstrations, and costs nothing.

Place:
  anywhere; a provider of your providers.yaml names it (see: rnix help providers.yaml):
    providers:
      - {name: test, driver: replay, script: test.yaml}    # beside providers.yaml, absolute, or below ~/
  and a run chooses it: rnix run --provider test "Look"

Example, one list of answers for every agent:

` + replayExample + `
Example, for several kinds of agents:

` + conversationsExample + `
Keys of the file:
  version        "1"
  responses      the answers, in order; each process goes through them from the beginning
  conversations  in place of responses: a list, of which the first one that fits is played

Keys of a conversation:
  system         a regular expression that the system prompt has to fit; left out: any does
  prompt         the same for the first message
  responses      as above. Texts may have ${1} and ${name} for groups of prompt, ${result} for the result of
                 the last call, ${result.1} for that of the first; $${ stands for ${

Keys of a response:
  content        what the model says
  reasoning      what it thinks before
  tool_calls     a list of its calls; after their results the next response is played
  usage          the tokens of the answer; left out: estimated
  stop_reason    end_turn, tool_use, max_tokens, refusal or stop_sequence; left out: what fits
  delay          time before the answer, e.g. 200ms
  error          in place of an answer

Keys of a tool call:
  name           the tool, e.g. read_file; see: rnix tools
  input          its input, as a map; a text is taken as it stands, valid or not
  id             left out: one is made

Keys of usage:
  input_tokens, output_tokens, cached_input_tokens
                 tokens; those from the cache are a part of the input

Keys of an error:
  code           AUTH, RATE_LIMITED, TIMEOUT, CANCELLED, INVALID, UNAVAILABLE or DRIVER
  message        what the provider says
  retry_after    how long it asks to wait, e.g. 2s

A call behind the last response fails with the code INVALID.`
