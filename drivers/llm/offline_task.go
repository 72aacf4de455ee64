package llm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"rnix/internal/pattern"
)

// The planner reads a task by its words, in this order: help, run a command, run the tests, find
// text, change something (which it cannot), report. Everything else it does not understand.
var (
	politeWords = pattern.New(`(?i)^(please|kindly|now|then|hey|can you|could you|would you|i want you to|i would like you to|you should)[\s,:]+`)
	helpWords   = pattern.New(`(?i)^(help|hi|hello|hey|\?|(who|what) are you|what can you do|how (do|can) i (use|connect)\b.*)[\s.!?]*$`)
	runWords    = pattern.New(`(?is)^(?:run|execute|exec)\b[ \t]*:?\s*(.+)$`)
	runTail     = pattern.New(`(?is)[\s,;]+(?:and|then|,)+\s+(?:then\s+)?(?:report|tell|show|say|print|give|summari[sz]e|explain|describe)\b.*$`)
	notCommand  = pattern.New(`(?i)^(the|a|an|all|my|our|your|this|that|these|those|its|it|some|any|everything|something)\b`)
	testWords   = pattern.New(`(?i)^(run|execute|start)?\s*(all\s+|the\s+|its\s+|our\s+|my\s+|unit\s+|project'?s?\s+|whole\s+)*(test|tests|test[ -]?suite|check whether the tests pass|do the tests pass)\b(\s+(this|the)\s+(project|repository|repo|code|package))?([\s.!?]*$|\s*(,|and|then)\s+(report|tell|show|say)\b.*)`)
	findWords   = pattern.New(`(?is)^(?:find|search(?:\s+for)?|grep(?:\s+for)?|look\s+for|locate|where\s+(?:is|are)|list\s+all|show\s+all)\s+(.+)$`)
	quotedText  = pattern.New("\"([^\"\n]{1,200})\"|“([^”\n]{1,200})”|`([^`\n]{1,1000})`|'([^'\n]{1,200})'")
	findLead    = pattern.New(`(?i)^(all|any|every|each|the|a|an|me|for|files?|lines?|places?|named|called|containing|that contain|which contain|with|where|uses?|usages?|occurrences?|references?|definitions?|of|to|text|string|word)\s+`)
	findTail    = pattern.New(`(?i)\s+((in|within|inside|across|throughout)\s+(this|the|my|our|all)\b.*|comments?|notes?|files|((is|are)\s+)?(defined|used|declared)\??|and\s+(report|list|show|tell|count)\b.*)$`)
	reportWords = pattern.New(`(?i)\b(report|overview|summary|summari[sz]e|describe|description|analy[sz]e|analysis|explain|inspect|survey|status|tour|structure|look (at|around)|what('s| is)( in)? (this|here|the (project|repo|repository|directory|folder|code)))\b`)
	changeVerb  = pattern.New(`(?i)^(fix|write|implement|create|add|change|edit|refactor|delete|remove|rename|update|upgrade|install|deploy|commit|push|merge|translate|generate|build|make|migrate|convert|move|replace|improve|optimi[sz]e|solve|debug|repair|rewrite|port|produce|prepare|design|develop|clean|format|insert|append|extend|put|set|revert|release|publish|send|copy)\b`)
	makeReport  = pattern.New(`(?i)^(write|create|make|generate|produce|prepare|add)\s+(me\s+|us\s+)?(an?\s+|the\s+)?(\w+\s+){0,2}(report|overview|summary|description)\b`)
	intoFile    = pattern.New(`(?i)\b(to|into|in|as)\s+(a\s+file|\S*[\w-]\.(md|txt|html|json|pdf|csv))\b`)
)

// job chooses the work.
func (t *offlineTurn) job() offlineJob {
	task := t.task
	for politeWords().MatchString(task) {
		task = strings.TrimSpace(politeWords().ReplaceAllString(task, ""))
	}
	switch {
	case task == "" || helpWords().MatchString(task):
		return offlineJob{report: func(*offlineTurn) (string, error) { return offlineHelp, nil }, stages: noStages}
	case testWords().MatchString(task):
		return testJob
	}
	if cmd := command(task); cmd != "" {
		return runJob(cmd)
	}
	if what, files := searched(task); what != "" {
		if files {
			return filesJob(what)
		}
		return findJob(what, !quotedText().MatchString(task))
	}
	change := changeVerb().MatchString(task) && (intoFile().MatchString(task) || !makeReport().MatchString(task))
	if !change && !runWords().MatchString(task) && reportWords().MatchString(task) {
		return reportJob
	}
	return offlineJob{stages: noStages, report: refusal} // what is not done must not end as if it were
}

func noStages(*offlineTurn) []offlineStage { return nil }

// command returns the command that a task asks to run, or "".
func command(task string) string {
	if strings.HasPrefix(task, "`") && strings.HasSuffix(task, "`") && strings.Count(task, "`") == 2 {
		return strings.Trim(task, "`")
	}
	if strings.HasPrefix(task, "$ ") {
		return strings.TrimSpace(task[2:])
	}
	m := runWords().FindStringSubmatch(task)
	if m == nil {
		return ""
	}
	rest := strings.TrimSpace(m[1])
	if i := strings.IndexByte(rest, '`'); i >= 0 {
		if j := strings.IndexByte(rest[i+1:], '`'); j > 0 {
			return strings.TrimSpace(rest[i+1 : i+1+j])
		}
	}
	if m := regexp.MustCompile(`(?i)^(the\s+)?command\s*:?\s+(.+)$`).FindStringSubmatch(rest); m != nil {
		rest = m[2]
	}
	if notCommand().MatchString(rest) {
		return ""
	}
	rest = strings.TrimSpace(runTail().ReplaceAllString(rest, ""))
	if len(rest) > 1 && (rest[0] == '"' || rest[0] == '\'') && rest[len(rest)-1] == rest[0] {
		rest = rest[1 : len(rest)-1]
	}
	return rest
}

// searched returns what a task asks to find, and whether that is a pattern of file names.
func searched(task string) (what string, files bool) {
	m := findWords().FindStringSubmatch(task)
	if m == nil {
		return "", false
	}
	rest := strings.TrimSpace(m[1])
	if q := quotedText().FindStringSubmatch(rest); q != nil {
		what = q[1] + q[2] + q[3] + q[4]
	} else {
		what = strings.TrimRight(rest, ".?! ")
		for findTail().MatchString(what) {
			what = findTail().ReplaceAllString(what, "")
		}
		for findLead().MatchString(what) {
			what = findLead().ReplaceAllString(what, "")
		}
		if len(strings.Fields(what)) > 4 {
			return "", false // a sentence, not a text to search for
		}
	}
	named := regexp.MustCompile(`(?i)\bfiles?\s+(named|called)\b`).MatchString(rest)
	return what, named || strings.ContainsAny(what, "*") && !strings.ContainsAny(what, " \\(")
}

// refusal is the answer to a task that needs a language model.
func refusal(t *offlineTurn) (string, error) {
	return "", fmt.Errorf("the offline planner is not a language model and cannot do this: %q; it can report on a directory, find text and run a command (say help); connect a model (set ANTHROPIC_API_KEY or OPENAI_API_KEY, or see rnix doctor)", shortened(t.task, 60))
}

// offlineHelp says what the planner is.
const offlineHelp = `# No language model is connected

I am the offline planner: a small program with fixed rules. I do not understand language beyond the few forms below, and I never change a file of my own accord.

## What I can do

| Say                           | and I                                                            |
|-------------------------------|------------------------------------------------------------------|
| report on this directory      | describe files, languages, README, tests, git history and TODOs  |
| find "some text"              | search all files and list the lines                              |
| find *.go                     | list the files with such names                                   |
| run ` + "`make lint`" + `               | run a command and report its exit code and output                |
| run the tests                 | work out the test command, run it and report                     |

## How to connect a model

- **Anthropic**: set ANTHROPIC_API_KEY
- **OpenAI, or a server that speaks its protocol** (Ollama, llama.cpp, vLLM): set OPENAI_API_KEY, and OPENAI_BASE_URL for your own server
- **Claude Code**: install the claude command, log in once with it, and have it in PATH
- **Anything else**: describe it in ~/.config/rnix/providers.yaml

Then start again, or name one for a single run: ` + "`rnix --provider anthropic ...`"

// notAllowed is what stands in the place of something that a missing tool would have found.
func notAllowed(tool string) string { return "Not looked at: this process has no tool `" + tool + "`." }

// resultLines returns the lines of a tool's answer, without the notes in brackets at its end, and the notes.
func resultLines(text string) (lines, notes []string) {
	lines = strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
	for len(lines) > 0 {
		l := strings.TrimSpace(lines[len(lines)-1])
		if l != "" && (l[0] != '[' || l[len(l)-1] != ']') {
			break
		}
		if l != "" {
			notes = append(notes, strings.Trim(l, "[]"))
		}
		lines = lines[:len(lines)-1]
	}
	slices.Reverse(notes)
	return lines, notes
}
