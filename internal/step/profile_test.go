package step

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/types"
)

// story is the records of a history, made by hand.
type story struct {
	recs []Record
	msgs int // of the conversation
	n    int // steps
}

func (s *story) add(r Record) {
	r.Seq = uint64(len(s.recs) + 1)
	s.recs = append(s.recs, r)
}

func (s *story) say(m rnixctx.Message, delivered ...uint64) {
	s.msgs++
	s.add(Record{Kind: KindMessage, Message: &m, Delivered: delivered})
}

func (s *story) mark(name, text string, detail any) {
	b, err := json.Marshal(detail)
	if err != nil {
		panic(err)
	}
	s.add(Record{Kind: KindMarker, Marker: &Marker{Name: name, Text: text, Detail: b}})
}

// step is a step in which the model calls a tool. counted is the provider's count of the prompt; 0 = none.
func (s *story) step(tool, output string, counted int) {
	s.n++
	prompt, id := s.msgs, fmt.Sprint("c", s.n)
	s.say(rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "I look.", ToolCalls: []rnixctx.ToolCall{{ID: id, Name: tool, Input: json.RawMessage(`{"path":"a"}`)}}})
	s.say(rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: output})
	s.add(Record{Kind: KindStep, Step: &StepRecord{StepNumber: s.n, MessageCount: prompt, Input: counted, Provider: "p", Model: "m", Estimated: counted == 0}})
}

func (s *story) compact(ms ...rnixctx.Message) {
	b, err := CompactionDetail(ms, nil, false)
	if err != nil {
		panic(err)
	}
	s.msgs = len(ms)
	s.add(Record{Kind: KindMarker, Marker: &Marker{Name: MarkerCompaction, Detail: b}})
}

func (s *story) history(t testing.TB) *History {
	t.Helper()
	h, err := Fold(types.NewUUID(), func(yield func(Record, error) bool) {
		for _, r := range s.recs {
			if !yield(r, nil) {
				return
			}
		}
	})
	must(t, err)
	return h
}

func (s *story) profile(t testing.TB, o ProfileOptions) Profile {
	t.Helper()
	p, err := s.history(t).Profile(o)
	must(t, err)
	return p
}

func begin(intent string) *story {
	s := &story{}
	s.mark(MarkerSpawn, intent, Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{Intent: intent, WorkDir: "/w", Skills: []string{"tests"}}}, SystemPrompt: "Be good."})
	s.say(*user(intent))
	return s
}

func metaOf(window int) *Meta {
	return &Meta{SystemPrompt: "Be good.\n\n# Skill: tests\nRun them all.\n\n# The project's own instructions (/w/AGENTS.md)\nNo tabs.",
		Tools: []ToolDef{{Name: "read_file", Description: strings.Repeat("reads ", 20), Schema: []byte(`{"type":"object"}`)}},
		Model: &ModelDef{Provider: "p", Driver: "anthropic", ContextWindow: window, WindowFrom: "context_window of provider p, file:3"}}
}

func sectionsOf(p *Profile) string {
	var out []string
	for _, s := range p.Sections {
		out = append(out, strings.TrimSuffix(s.Section+":"+s.Name, ":"))
	}
	return strings.Join(out, " ")
}

func TestEverySectionOfAPromptIsNamed(t *testing.T) {
	s := begin("mend it")
	s.step("read_file", strings.Repeat("x", 4000), 500)
	s.step("plan", "noted", 1800)
	s.say(*user("faster please"), 1)
	s.say(*user("[MESSAGES] What follows ..."), 2)
	s.mark(MarkerInput, "go on", nil)
	s.say(*user("go on"))
	s.say(*user("[Your last answer was empty.]"))
	p := s.profile(t, ProfileOptions{Meta: metaOf(10000)})
	want := "system skills:tests project tools intent user messages notes plan assistant calls tool_result:read_file"
	if got := sectionsOf(&p); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, x := range p.Sections {
		if x.Section == SectionUser && x.Messages != 2 || x.Section == SectionPlan && x.Messages != 2 || x.Section == SectionToolResult && (x.Tokens < 900 || x.Bytes != 4000) {
			t.Errorf("%+v", x)
		}
	}
	in := begin("sum up")
	in.recs[0].Marker.Detail, _ = json.Marshal(Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{Intent: "sum up"}}, Inputs: []InputRef{{Name: "a"}}})
	in.recs[1].Message.Content = "sum up\n\nWhat follows was handed over with this task. data data data"
	p = in.profile(t, ProfileOptions{})
	if got := sectionsOf(&p); got != "intent inputs" || p.Sections[0].Bytes != 6 || len(p.Missing) != 1 {
		t.Errorf("%s: %+v, missing %q", got, p.Sections, p.Missing)
	}
}

func TestSharesOfAPromptAddUpToWhatTheProviderHasCounted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := begin("do")
		last := 0
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if last = rapid.IntRange(1, 5000).Draw(rt, "counted"); rapid.Bool().Draw(rt, "uncounted") {
				last = 0
			}
			s.step("read_file", strings.Repeat("y", rapid.IntRange(0, 3000).Draw(rt, "bytes")), last)
			if rapid.IntRange(0, 5).Draw(rt, "compact") == 0 {
				s.compact(*user("do"))
			}
		}
		for n := 1; n <= s.n; n++ {
			p := s.profile(t, ProfileOptions{Meta: metaOf(0), Step: n})
			sum, messages := 0, 0
			for _, x := range p.Sections {
				sum += x.Tokens
			}
			for _, x := range p.Segments {
				if x.N > 0 {
					messages++
				}
				if x.Tokens < 0 {
					rt.Fatalf("%+v", x)
				}
			}
			q := p.Prompts[n-1]
			if sum != p.Tokens || messages != p.Shown || q.Messages != p.Shown {
				rt.Fatalf("sections have %d of %d tokens, %d messages, %d shown", sum, p.Tokens, messages, p.Shown)
			}
			if q.Step != n || !q.Estimated && (p.Tokens != q.Tokens || p.Estimated) {
				rt.Fatalf("step %d: %d tokens (estimated %v), and the provider has counted %+v", n, p.Tokens, p.Estimated, q)
			}
			if q.Stable > q.Tokens || q.Stable < 0 {
				rt.Fatalf("%+v", q)
			}
		}
	})
}

// A conversation that is never compacted takes no longer for each of its steps.
func TestWorkOfAProfileGrowsWithItsStepsAlone(t *testing.T) {
	worked := func(steps int) time.Duration {
		var s story
		for range steps {
			s.step("read_file", "out", 100)
		}
		h := &History{Records: s.recs}
		for i := range s.recs {
			if r := s.recs[i].Step; r != nil {
				h.Steps = append(h.Steps, *r)
			}
		}
		var before, after syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before) // cannot fail
		p, err := h.Profile(ProfileOptions{})
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
		if err != nil || p.Steps != steps || p.Tokens == 0 {
			t.Fatalf("%d steps, %d tokens, %v", p.Steps, p.Tokens, err)
		}
		return time.Duration(after.Utime.Nano() - before.Utime.Nano())
	}
	var few, many time.Duration
	for range 5 { // a machine with other work makes one of them slower now and then
		few, many = max(worked(3000), 3*time.Millisecond), worked(60_000)
		if many <= 100*few { // 20 times as many; with the square, 400 times
			return
		}
	}
	t.Errorf("3,000 steps took %s, and 60,000 took %s", few, many)
}

func TestGrowthSaysHowManySteps(t *testing.T) {
	s := begin("do")
	for n := range 6 {
		s.step("read_file", strings.Repeat("z", 400), 1000+100*n)
	}
	p := s.profile(t, ProfileOptions{Meta: metaOf(10000), Step: 6})
	w := p.Window
	if w.Growth != 100 || w.Over != 5 || w.CompactAt != 8000 || w.StepsLeft == nil || *w.StepsLeft != 65 || w.Used != 150 {
		t.Errorf("%+v, %v", w, w.StepsLeft)
	}
	if p = s.profile(t, ProfileOptions{Meta: metaOf(0)}); p.Window.StepsLeft != nil || !strings.Contains(p.Window.From, "providers.yaml") {
		t.Errorf("without a window: %+v", p.Window)
	}
	if p = s.profile(t, ProfileOptions{Meta: &Meta{}}); p.Window.From != "there is none: no model reads this" {
		t.Errorf("without a model: %+v", p.Window)
	}
	if p.Cache.Next != 1500 || p.Cache.Breaks != 0 || p.Cache.Stable != 1000+1100+1200+1300+1400 {
		t.Errorf("%+v", p.Cache)
	}
	if _, err := s.history(t).Profile(ProfileOptions{Step: 9}); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("step 9: %v", err)
	}
}

func TestWhatBreaksTheBeginningIsNamed(t *testing.T) {
	s := begin("do it well")
	s.step("read_file", "one", 1000)
	s.step("read_file", "two", 1100)
	s.compact(*user("do it well"), rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "shorter"})
	s.step("read_file", "three", 600)
	s.mark(MarkerResumed, "", Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{Intent: "do it well", WorkDir: "/other"}}, SystemPrompt: "Be good."})
	s.step("read_file", "four", 700)
	for i, git := range []string{"on main", "on main", "on other"} { // told again as it was, it breaks nothing
		s.mark(MarkerResumed, "", Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{Intent: "do it well", WorkDir: "/other"}}, SystemPrompt: "Be good.", Git: &GitTold{Text: git}})
		s.step("read_file", fmt.Sprint("five", i), 700+i)
	}
	s.add(Record{Kind: KindStep, Step: &StepRecord{StepNumber: 8, MessageCount: s.msgs, Input: 900, Provider: "p", Model: "other"}})
	p := s.profile(t, ProfileOptions{Meta: metaOf(0)})
	var got []string
	for _, q := range p.Prompts {
		if q.Broke != nil {
			got = append(got, fmt.Sprint(q.Step, " ", q.Broke.By, " ", q.Broke.Message, q.Compacted))
		}
	}
	if want := "3 compaction 2 true, 4 resume 0 false, 5 resume 0 false, 7 resume 0 false, 8 model 0 false"; strings.Join(got, ", ") != want || p.Compactions != 1 || p.Cache.Breaks != 5 {
		t.Errorf("%s; %+v", strings.Join(got, ", "), p.Cache)
	}
	if p.Dropped != 5 || p.Prompts[2].Stable == 0 || p.Prompts[7].Stable != 0 || p.Prompts[7].Broke.Lost != 702 {
		t.Errorf("%d dropped, %+v", p.Dropped, p.Prompts)
	}
}

// A model that gave no answer, in the step before or in this one, is not another model.
func TestAStepWithoutAnAnswerIsOfNoOtherModel(t *testing.T) {
	s := begin("do")
	s.step("read_file", "one", 1000)
	s.n++
	s.add(Record{Kind: KindStep, Step: &StepRecord{StepNumber: s.n, MessageCount: s.msgs, Summary: "no answer: the key is wrong"}})
	s.step("read_file", "two", 1100)
	p := s.profile(t, ProfileOptions{Meta: metaOf(0)})
	if p.Cache.Breaks != 0 || p.Prompts[2].Stable == 0 {
		t.Errorf("%+v; %+v", p.Cache, p.Prompts)
	}
	s.n++
	s.add(Record{Kind: KindStep, Step: &StepRecord{StepNumber: s.n, MessageCount: s.msgs, Summary: "no answer"}})
	s.add(Record{Kind: KindStep, Step: &StepRecord{StepNumber: s.n + 1, MessageCount: s.msgs, Input: 1200, Provider: "p", Model: "other"}})
	if p = s.profile(t, ProfileOptions{Meta: metaOf(0)}); p.Cache.Breaks != 1 || p.Prompts[4].Broke == nil || p.Prompts[4].Broke.By != BreakModel {
		t.Errorf("another model behind a step without an answer: %+v; %+v", p.Cache, p.Prompts)
	}
}

func TestCountsOfACommandLineAreNotThoseOfAPrompt(t *testing.T) {
	s := begin("do")
	s.step("read_file", "x", 90000)
	m := metaOf(0)
	m.Model.Driver = "claude-agent"
	if p := s.profile(t, ProfileOptions{Meta: m}); p.Uncounted == "" || p.Tokens > 500 || !p.Estimated || p.Sections[0].Counted {
		t.Errorf("%+v", p)
	}
}

func TestOldProfilesAreRead(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, ProfileFile), []byte(`{"v":1,"uuid":"00000000-0000-7000-8000-000000000001","steps":3,"tokens":7,"tokens_sent":9,"segments":[{"seq":2,"role":"user","tokens":7,"prompts":3}]}`), 0o600))
	if p, err := ReadProfile(durable.OS, dir); err != nil || p.V != 1 || p.Tokens != 7 || p.Segments[0].Prompts != 3 {
		t.Errorf("%+v, %v", p, err)
	}
	must(t, os.WriteFile(filepath.Join(dir, ProfileFile), []byte(`{"v":3}`), 0o600))
	if _, err := ReadProfile(durable.OS, dir); types.CodeOf(err) != types.ErrVersion {
		t.Errorf("a newer one: %v", err)
	}
}

// large is 5,000 messages with 100,000 tokens of our estimate.
func large() *story {
	s := begin("do")
	for n := range 2500 {
		s.step("read_file", strings.Repeat("word ", 16), 1000+40*n)
	}
	return s
}

func BenchmarkProfile(b *testing.B) {
	h, m := large().history(b), metaOf(200000)
	b.ReportAllocs()
	for b.Loop() {
		p, err := h.Profile(ProfileOptions{Now: time.Now(), Meta: m, Preview: 120})
		if err != nil || p.Shown != 5001 || p.Tokens < 90000 {
			b.Fatal(p.Shown, p.Tokens, err)
		}
	}
}
