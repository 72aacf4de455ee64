package compose

// Template is a workflow with everything that a file can say, explained.
const Template = `# A workflow: agents that wait for each other. Check it with "rnix compose check", look at it with
# "rnix compose graph", run it with "rnix compose up".
version: "1.0"
name: review                    # of the run
intent: Review the changes of this project

# For all nodes that say nothing else: provider, model, fallback_provider, fallback_model, reasoning_effort.
# For the whole run: budget (tokens), budget_usd, timeout, max_parallel.
budget: 500k
timeout: 1h

# Values for ${name} in texts; "rnix compose up --var since=HEAD~3" gives another one.
vars:
  since: HEAD~1

agents:
  list:
    intent: List the files that have changed since ${since}, as a JSON array of paths, and nothing else.
    output:                     # what does not fit counts as a failed attempt, and the next one is told why
      schema: {type: array, items: {type: string}}
    retries: {max: 2, on: [output], backoff: {initial: 1s, factor: 2, max: 1m}}

  review:                       # once for each file, side by side
    foreach: {from: list, max: 50}     # or a list, or {files: "src/**/*.go"}
    intent: Review the file ${item} and name what is wrong in it, with line numbers.
    deny: [/dev/workspace, /dev/shell] # it reads files, and cannot write: a shell could
    max_steps: 20
    timeout: 10m

  merge:                        # is given the reviews as data
    depends_on: {review: completed}    # succeeded (what a list means), failed, or completed: whichever way
    intent: Merge the reviews into one report, the worst first.

# More of a node: agent, provider, model, fallback_provider, fallback_model, reasoning_effort, system_prompt,
# skills, mcp, allow, budget, budget_usd, cwd, network (of its commands: none or open) or sandbox: {level: auto,
# net: hosts, hosts: [npm, api.example.com], memory: 4GiB}, which only tighten what the run has, and worktree (true, or {branch: NAME, base: COMMIT, conflicts: stop or resolve}:
# each attempt has a git work tree, which begins with the work of the nodes that it waits for, and its own branch;
# "rnix compose merge RUN" brings the work of the last node back).
`
