package config

// The examples of the help, which are files that work as they stand.
const (
	providersExample = `version: "1"
default_provider: local
providers:
  - name: local                     # a server on this machine with OpenAI's API
    driver: openai-compat
    base_url: http://127.0.0.1:8080/v1
    default_model: some-model
    context_window: 32768
  - name: work                      # a second key for one vendor
    driver: anthropic
    api_key_file: ~/keys/anthropic  # chmod 600
    default_model: claude-opus-5-5
  - name: test                      # no model: answers from a file (see: rnix help replay-files)
    driver: replay
    script: test.yaml               # beside this file
`
	configExample = `max_steps: 100
budget_usd: 5
shell:
  timeout: 5m
sandbox:
  net: none
permissions:
  ask: [shell]
  allow: ['shell go test *']
  deny: ['shell git push *']
gc:
  retention_days: 90
`
)

// ProvidersHelp is the help about providers.yaml.
const ProvidersHelp = `providers.yaml says which models there are and how each one is asked. Without it there are the built-in
providers, which rnix providers lists.

Place:
  ~/.config/rnix/providers.yaml     yours; XDG_CONFIG_HOME moves ~/.config
  .rnix/providers.yaml              of a project: may choose among models, not send your keys elsewhere

Example:

` + providersExample + `
Keys of the file:
  version           "1"
  default_provider  the name of the provider that is used when none is named
  providers         a list; a built-in name, such as anthropic, changes that provider

Keys of a provider:
  name              letters, digits, - and _
  driver            anthropic, openai, openai-compat, claude-cli, cursor-cli, claude-agent, codex-agent,
                    opencode-agent, replay or offline
  default_model     the model when none is named
  base_url          the address of the server; openai-compat needs one
  api_key_env       the variable that has the key, e.g. WORK_API_KEY
  api_key_file      a file that has it, readable by you alone; used when the variable is not set
  api_key_command   a program that prints it, as a list: [pass, show, anthropic]
  api_key_ttl       how long what it printed is used, e.g. 5m
  headers           further HTTP headers, as names and values; ${VARIABLE} is replaced
  max_tokens        tokens of one answer, at most
  reasoning_effort  low, medium or high
  thinking          anthropic: adaptive, off, or a number of tokens from 1024 on
  api               openai, openai-compat: chat or responses
  timeout_sec       seconds that one call may take
  grace_sec         claude-cli, cursor-cli: seconds until a program that was told to end is killed
  concurrency       calls at once; the others wait in order
  context_window    tokens that a prompt may have; without it the built-in table counts
  models            by model what differs: {some-model: {context_window: 65536}}
  command           the program of an agent CLI, by name or absolute path
  extra_args        a list of further arguments for it
  tools             -agent drivers: own (the CLI's plus Rnix's) or kernel (Rnix's only)
  sandbox           -agent drivers: read-only, workspace-write or full
  script            replay: the file with the answers, absolute, below ~/ or beside providers.yaml

rnix providers shows what was read, and mistakes with file and line.`

// ConfigHelp is the help about config.yaml.
const ConfigHelp = `config.yaml holds limits and defaults. All keys may be left out. A project may only tighten what yours says;
flags of a command come first. rnix init writes a commented one for a project.

Place:
  ~/.config/rnix/config.yaml  yours; XDG_CONFIG_HOME moves ~/.config
  .rnix/config.yaml           of a project; not the keys marked with *
  Environment variables have the names of the keys: RNIX_MAX_STEPS, RNIX_SHELL_TIMEOUT, RNIX_GC_MODE; not
  those of permissions, notify and web, and no lists.

Example:

` + configExample + `
Keys, with their defaults:
  data_dir *                 where histories are kept (~/.rnix/data)
  default_agent              the agent when none is named (assistant)
  max_steps                  steps of a process; 0 = no limit (0)
  max_failed_steps           steps in a row in which every call failed, until an agent ends; 0 = no limit (40)
  context_budget             tokens of a process and its descendants; 0 = unlimited (0)
  budget_usd                 the same in dollars (0)
  budget.unknown_price_usd_per_mtok *
                             dollars per million tokens of a model without a known price; 0 = it is refused (0)
  durability                 full: records survive a power failure; none: only the end of the program (full)
  shell.timeout              time limit of one command, e.g. 5m; 0 = none (2m)
  read_roots *               a list of directories that agents may read besides the project ([])
  concurrency                calls that one provider gets at once (4)

  permissions.ask            a list of the calls you are asked about, as of --ask; see: rnix run --help
  permissions.allow          calls that need no question
  permissions.deny           calls that are refused

  sandbox.level              auto, bwrap, landlock or off (auto)
  sandbox.net                none, hosts or open (none)
  sandbox.hosts              the hosts that commands reach with net: hosts, e.g. [npm, example.org]
  sandbox.require *          false: a sandbox that cannot be had is done without (true)
  sandbox.read *             a list of further directories that commands may read
  sandbox.write *            the same for writing
  sandbox.hide               a list of directories that commands do not see
  sandbox.memory             of all that a process starts together, e.g. 4GiB; 0 = no limit (0)
  sandbox.processes          the same, processes and threads (0)

  limits.depth *             generations of agents below the one that you started (8)
  limits.children *          living children of one agent (32)
  limits.family *            living agents below one that you started (256)
  limits.total *             living agents (1048576)
  limits.spawn_rate *        agents that a family starts within a minute (240)

  heartbeat.enabled *        look for processes that make no progress (true)
  heartbeat.stall *          after so long without progress a process is stalled (30m)
  heartbeat.policy *         warn, restart or kill (warn)
  heartbeat.interval *       between two looks (30s)
  heartbeat.max_restarts *   of one process in one step (2)

  checkpoint.every_steps     0 = not by steps (5)
  checkpoint.every_seconds   0 = not by time (30)
  daemon.auto_resume *       a starting daemon resumes what ran before (true)
  daemon.auto_resume_max *   how many it resumes at most; 0 = none
  snapshots.enabled *        keep the files after each step (true)
  snapshots.max_bytes *      not of a larger workspace; 0 = no limit (1GiB)
  snapshots.max_files *      not of one with more files; 0 = no limit (100000)
  disk.min_free *            with less free space agents wait; 0 = they never do (1GiB)
  disk.outputs *             what a process may keep of the outputs of its commands; 0 = no limit (256MiB)

  gc.retention_days *        days after which an ended process is archived; 0 = never (30)
  gc.archive_days *          days that an archive stays; 0 = for ever (0)
  gc.max_entries *           ended processes that are kept; 0 = no limit (500)
  gc.interval_seconds *      between two runs in the background (3600)
  gc.mode *                  archive or delete (archive)

  notify.on *                a list of ask, failed, suspended, done (all)
  notify.command *           a program and its arguments, as a list
  notify.desktop *           by notify-send (false)
  notify.post *              a URL that gets JSON
  notify.token_env *         the variable with a bearer token for it
  notify.every *             the least time between two (5s)

  web.port *                 of the dashboard that a command which starts the daemon starts, too, if
                             it can show the link; such as 7718; 0 = none is (0)
  web.search.engine *        gives agents the tool web_search: brave, tavily or searxng
  web.search.url *           where it is asked; searxng needs one
  web.search.api_key_env, web.search.api_key_file, web.search.api_key_command, web.search.api_key_ttl *
                             its key, as of a provider; see: rnix help providers.yaml

  platform.url *             a control plane that is told of sessions (rnix run --session)
  platform.token_env *       the variable with its token (RNIX_PLATFORM_TOKEN)
  platform.worker *          what it knows this machine by
  platform.interval *        between two refreshes of a lease

While config.yaml has a mistake that may drop a limit, no agent starts; the error names file, line and fix.`
