package cli

import (
	"regexp"
	"strings"
	"testing"

	"rnix/drivers/llm"
)

func TestTheExamplesOfReplayFilesWorkAsTheyStand(t *testing.T) {
	for _, text := range []string{replayExample, conversationsExample} {
		if _, err := llm.ParseReplay("", "test.yaml", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheHelpHasEachKeyOfAReplayFile(t *testing.T) {
	for _, text := range []string{
		"zz: 1", "responses: [{zz: 1}]", "conversations: [{zz: 1}]", "responses: [{usage: {zz: 1}}]", "responses: [{error: {zz: 1}}]", "responses: [{tool_calls: [{zz: 1}]}]",
	} {
		_, err := llm.ParseReplay("", "test.yaml", []byte("version: \"1\"\n"+text+"\n"))
		if err == nil {
			t.Fatalf("%s is taken", text)
		}
		_, known, ok := strings.Cut(err.Error(), `unknown key "zz"; known are `)
		if !ok {
			t.Fatal(err)
		}
		for key := range strings.SplitSeq(known, ", ") {
			if !regexp.MustCompile(`(?m)^  (\S+, )*` + key + `(,| |$)`).MatchString(replayHelp) {
				t.Errorf("%s is not in the help", key)
			}
		}
	}
}

func TestEachTopicIsShownAndNamed(t *testing.T) {
	f := newFake(t)
	first, all := f.run("help"), f.run("help", "--all")
	for _, e := range topics() {
		r := f.run("help", e.names)
		if r.code != 0 || len(r.out) < 500 || r.err != "" {
			t.Errorf("%s: %+v", e.names, r)
		}
		for line := range strings.Lines(r.out) {
			if n := cells(line); n > 113 {
				t.Errorf("%s: %d cells: %s", e.names, n, line)
			}
		}
		if !strings.Contains(first.out, "rnix help "+e.names) || !strings.Contains(all.out, e.names) {
			t.Errorf("%s is not named by rnix help, or by --all:\n%s\n%s", e.names, first.out, all.out)
		}
	}
	for typed, want := range map[string]string{"config.yml": "config.yaml", "provider.yaml": "providers.yaml", "replay-file": "replay-files", "replay": "replay-files"} {
		if r := f.run("help", typed); r.code != 2 || !strings.Contains(r.err, "did you mean: rnix help "+want) {
			t.Errorf("%s: %+v", typed, r)
		}
	}
}

func TestAConversationRefusesWhatHasNoEffectOnIt(t *testing.T) {
	f := newFake(t)
	for args, name := range map[string]string{"chat -q": "quiet", "chat -v": "verbose", "chat --json": "json", "chat --detach": "detach", "attach -q 3": "quiet", "attach --json 3": "json"} {
		if r := f.run(strings.Fields(args)...); r.code != 2 || !strings.Contains(r.out+r.err, "--"+name+" is not for a conversation") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestTheHelpOfChatHasNoFlagThatItRefuses(t *testing.T) {
	f := newFake(t)
	help := f.run("chat", "--help").out
	for _, name := range runOnly {
		if strings.Contains(help, "--"+name) {
			t.Errorf("--%s is listed", name)
		}
	}
	if !strings.Contains(help, "--worktree") || !strings.Contains(f.run("run", "--help").out, "--detach") {
		t.Error("flags are missing")
	}
}
