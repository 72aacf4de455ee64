package permit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestQuestionsAreBounded(t *testing.T) {
	many := fmt.Sprintf(`{"question":"q","choices":[%s]}`, strings.TrimSuffix(strings.Repeat(`"x",`, MaxChoices+1), ","))
	for input, want := range map[string]string{
		`{}`:                          "the question is empty",
		`{"question":" \n"}`:          "the question is empty",
		`{"question":7}`:              "cannot unmarshal",
		`{"question":"q","header":1}`: "unknown field",
		`[]`:                          "cannot unmarshal",
		many:                          "13 choices, of at most 12",
		`{"question":"` + strings.Repeat("x", MaxQuestion+1) + `"}`:               "4097 bytes, of at most 4096",
		`{"question":"q","choices":["a"," a"]}`:                                   "choice 2 is the same",
		`{"question":"q","choices":[" "]}`:                                        "choice 1 is empty",
		`{"question":"q","choices":["a\u001b[2J"]}`:                               "choice 1 must be one line",
		`{"question":"q","choices":["` + strings.Repeat("x", MaxChoice+1) + `"]}`: "choice 1 has 201 bytes",
		`{"question":"q","choices":["a"],"default":"b"}`:                          "must be one of the choices",
		`{"question":"q","default":"` + strings.Repeat("x", MaxAnswer+1) + `"}`:   "the default has",
	} {
		if _, err := ReadQuestion(json.RawMessage(input)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", input, err, want)
		}
	}
	q, err := ReadQuestion(json.RawMessage(`{"question":"q","choices":[" one ","two"],"default":"2"}`))
	if err != nil || q.Default != "two" || q.Choices[0] != "one" {
		t.Errorf("%+v %v", q, err)
	}
}

func TestAChoiceIsMeantByItsTextBeforeItsNumber(t *testing.T) {
	q := Question{Choices: []string{"3", "2", "Third", "1"}}
	for text, want := range map[string]string{"3": "3", " 2\n": "2", "4": "1", "THIRD": "Third", "5": "5", "0": "0", "-1": "-1", "else": "else"} {
		if got := q.Answer(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if q := (Question{}); q.Answer("1") != "1" {
		t.Error("a number is none without choices")
	}
}

func TestAQuestionNeedsNoRuleAndARuleCanForbidIt(t *testing.T) {
	ask := func(s Settings) Verdict {
		return s.Judge(&Call{Tool: "ask", Path: AskPath, Input: json.RawMessage(`{"question":"q"}`)})
	}
	for _, c := range []struct {
		s    Settings
		want Verdict
	}{
		{Settings{}, Verdict{Decision: Ask}},
		{Settings{DefaultAfter: time.Minute}, Verdict{Decision: Ask, After: time.Minute}},
		{Settings{Layers: []Rules{{Ask: []string{"*"}, Allow: []string{"ask"}}}}, Verdict{Decision: Ask}},
		{Settings{Layers: []Rules{{Deny: []string{"ask"}}}}, Verdict{Decision: Deny, Rule: "ask"}},
		{Settings{Layers: []Rules{{Deny: []string{"/sys/ask"}}}, Refuse: true}, Verdict{Decision: Deny, Rule: "/sys/ask"}},
		{Settings{Refuse: true, DefaultAfter: time.Minute}, Verdict{Decision: Deny, Unasked: true, After: time.Minute}},
	} {
		if got := ask(c.s); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.s, got, c.want)
		}
	}
	// What is below has the time of its own agent.
	if s := Meet(Settings{DefaultAfter: time.Hour}, Settings{}); s.DefaultAfter != 0 {
		t.Errorf("%+v", s)
	}
}
