// Package harness describes whole agent command lines, such as claude, codex and opencode: how one is
// started, what the lines that it prints mean, and what can be said to it while it runs. It holds values
// and pure functions only. It starts nothing, opens nothing, and knows neither processes nor models;
// whoever runs one does as a Command says and hands each line to a Lines.
package harness

import (
	"path/filepath"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/types"
)

// CLI is one agent command line. Its methods may be called at the same time.
type CLI interface {
	// Name is what a person calls it, and its program's usual name.
	Name() string
	// Can says what it is able to do.
	Can() Abilities
	// Command says how a session is started, or resumed. What the command line cannot do of what s asks
	// for is INVALID, and named; nothing is left out silently. Timeout and Silence of s are kept by
	// whoever runs it. So is CWD: a session can only be resumed in the directory where it began.
	Command(s agent.Spec, at Place) (*Command, error)
	// Lines returns a reader for the output of one run. before is what all earlier runs of the session have
	// used, the sum of their Totals; nothing for a new session.
	Lines(before agent.UsageEvent) Lines
	// ToolName is the name under which the model is offered a tool of an MCP server.
	ToolName(server, tool string) string
	// Login says what it keeps of a login in a home.
	Login() Login
	// Vendors says whom it asks for its models, for a user, so that another can stand in their places (Place.Gateway); UNAVAILABLE, with the reason, if
	// none can.
	Vendors(u User) ([]Vendor, error)
	// Kept says where the record of a session is. env looks up a variable that the program has.
	Kept(session string, env func(string) string) Kept
	// Steer returns what has to be written to its standard input so that it hears text while it runs, and is shown what goes along with it;
	// UNAVAILABLE if it hears nothing then.
	Steer(text string, shown ...agent.Attachment) ([]byte, error)
	// Judge returns the answer to a PermitEvent: what has to be written to its standard input, or is printed by Place.Judge for one
	// that asks by it (Abilities.Hook).
	Judge(e agent.PermitEvent, v Verdict) []byte
	// Asks reads a line of its output by which one asks on its standard streams; false for any other line. It holds for itself: whoever runs the
	// program answers it as soon as it is there, whatever stands before it, since the call is not made before.
	Asks(line []byte) (e agent.PermitEvent, ok bool)
	// Question reads what one that asks by Place.Judge gives it. INVALID if it is no question.
	Question(b []byte) (agent.PermitEvent, error)
	// Asked and Began return what a question and the call in the output have in common; empty if the output does not tell of the call, or if it is of a
	// tool about which it need not have asked.
	Asked(e agent.PermitEvent) string
	Began(e agent.ToolUseEvent) string
	// Interrupt returns what has to be written to its standard input so that it ends the turn in hand, but
	// not the session; UNAVAILABLE if it cannot be told.
	Interrupt() ([]byte, error)
}

// Abilities says what a command line is able to do.
type Abilities struct {
	Resume      bool // a session goes on by its id
	Steer       bool // it can be spoken to while it runs
	Interrupt   bool // a turn can be ended without the session
	OwnToolsOff bool // all tools of its own can be switched off (Spec.NoOwnTools)
	Turns       bool // it keeps Spec.MaxTurns
	Dollars     bool // it keeps Spec.MaxBudgetUSD, for each run of a session anew
	CountsCost  bool // it says what it has cost
	Images      bool // it takes images with what it is told (Spec.Attachments)
	Documents   bool // it takes PDFs with it
	Hook        bool // it asks about its calls by Place.Judge, and not on its standard streams
	Fixed       bool // Verdict.Input is only for a call that runs a command
	Begins      bool // a ToolUseEvent says that a call has begun, so it has asked about it before; else it may ask after that
}

// Kept says where a command line keeps its record of a session: in a file, or where only the program can read it.
type Kept struct {
	Files   []string // patterns of filepath.Glob, one of which finds it; none = Args
	Args    []string // of the program, which prints it as JSON, an item a line
	CallIDs bool     // the ids of ToolUseEvents are in it
}

// keptFiles are the files of a session below the directory of a command line: what a variable says, or one in the user's home.
func keptFiles(env func(string) string, variable, home, pattern string) Kept {
	dir := env(variable)
	if dir == "" {
		dir = filepath.Join(env("HOME"), home)
	}
	if !filepath.IsAbs(dir) || strings.ContainsAny(dir, `*?[\`) { // it cannot be told apart from a pattern
		return Kept{}
	}
	return Kept{Files: []string{filepath.Join(dir, pattern)}}
}

// Place says where a session runs.
type Place struct {
	// Program is the path of the program; empty = its usual name.
	Program string
	// Dir is a directory of this session only, with mode 0700, which outlives restarts of it. Absolute,
	// and not below /tmp: one command line's sandbox does not work from there.
	Dir string
	// MCPConfig is a file in claude's form that has the servers of Spec.MCPServers and no others; empty =
	// a Command has a file of its own where it needs one.
	MCPConfig string
	// Trusted says that the project's own settings of the command line count, which may run programs, such as
	// hooks. Else only its instructions for agents do, and the user's settings.
	Trusted bool
	// Confined says that whoever runs it confines it, as much as Spec.SandboxLevel asks for: its own sandbox, which would not work in another, is off.
	Confined bool
	// Judged says that whoever runs it decides about each call of a tool: it has a PermitEvent, and is not made before that is answered. Ignored
	// with Spec.NoOwnTools.
	Judged bool
	// Judge is the command by which one that asks so (Abilities.Hook) does: it gets the question on its standard input (CLI.Question), waits as long as it takes,
	// and prints the answer (CLI.Judge). It fails with a reason on standard error; then the call must not be made.
	Judge []string
	// Gateway is where it finds its vendors; nil = it calls them itself, with the user's keys.
	Gateway *Gateway
	// Env looks up a variable of the user, such as a key. nil = there are none.
	Env func(string) string
}

func (p Place) env(name string) string {
	if p.Env == nil {
		return ""
	}
	return p.Env(name)
}

// Command says how a program is started.
type Command struct {
	Program string
	Args    []string
	// Env are variables over a composed environment (PATH, HOME, ...): keys that the program logs in with,
	// switches of its own, and at last those of the Spec.
	Env map[string]string
	// Secrets are the names of those of Env whose values nobody may see.
	Secrets []string
	// Stdin is written first. With KeepStdin the pipe stays open then, for Steer and Interrupt, and the
	// program ends when it is closed: do that after a turn has ended (a ResultEvent) with nothing more to say.
	// Without KeepStdin it is closed at once.
	Stdin     []byte
	KeepStdin bool
	// Files are written before the start, with mode 0600, below Place.Dir, whose missing directories are
	// made with mode 0700.
	Files []File
}

// File is one file that a Command needs.
type File struct {
	Name string // relative, with slashes
	Data []byte
}

// Lines reads what one run prints. It is not safe for concurrent use.
type Lines interface {
	// Line says what one line of standard output means, in order. It takes any bytes: a line that is no
	// JSON, or was cut, is a SystemEvent "unreadable"; one that says nothing, or is of a type that is not
	// known, may be none.
	//
	// The first event is an InitEvent, unless the run fails before. A turn ends in a ResultEvent, in which Usage is
	// the total since this run began, without what a resumed session had used before. Whoever speaks to
	// the program after that gets another turn, and another ResultEvent. UsageEvents without Total are one
	// for each request to a model, as far as the program tells.
	Line(b []byte) []agent.Event
	// End says what the end of the program means for the session: nil if the last ResultEvent stands,
	// else the event that ends the session in its place.
	End(exit Exit) agent.Event
}

// Exit is how a program ended.
type Exit struct {
	Code    int    // not 0 if a signal ended it
	Signal  int    // the system's number; 0 = none
	Stderr  string // the end of what it wrote there
	Stopped bool   // whoever runs it ended it: that is no fault of its last result
}

// all are the command lines that there are, by name.
var all = map[string]CLI{"claude": claude{}, "codex": codex{}, "opencode": opencode{}}

// Names returns the names of all command lines, sorted.
func Names() []string {
	var out []string
	for n := range all {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// Lookup returns the command line of that name, or NOT_FOUND with the names that there are.
func Lookup(name string) (CLI, error) {
	if c := all[name]; c != nil {
		return c, nil
	}
	return nil, types.Errorf(types.ErrNotFound, "Lookup", name, "there is no such agent command line; there are %s", strings.Join(Names(), ", "))
}
