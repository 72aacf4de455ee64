package step

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/redact"
	"rnix/types"
)

const canary = "sk-canary-4711"

// structural are fields that name things. What is in them is ours, or the name of a tool, a file or a model.
var structural = []string{
	"Record.Kind", "Message.Role", "Message.ToolCallID", "ToolCall.ID", "ToolCall.Name", "Block.Provider", "Attachment.Media", "Attachment.SHA256",
	"Answer.Provider", "Answer.Model", "Answer.StopReason", "Answer.CostFrom",
	"Intent.CallID", "Intent.Tool", "Intent.Path", "Intent.Effect", "Intent.Key", "Snapshot.Kind", "Snapshot.ID", "Snapshot.Root", "Snapshot.Limited",
	"Result.CallID", "Result.Tool", "Result.Code", "Marker.Name",
	"StepRecord.Action", "StepRecord.ToolPath", "StepRecord.Provider", "StepRecord.Model", "StepRecord.StopReason", "StepRecord.CostFrom",
	"Ask.CallID", "Ask.Tool", "Ask.Path", "Call.ID", "Call.Name", "Call.Path", "Call.Code",
	"Suspension.SuspendKind", "ProcStatus.Name", "ProcInfo.State", "ProcStatus.Agent", "ProcStatus.Kind", "ProcStatus.Skills", "ProcStatus.Provider", "ProcStatus.Model", "ProcInfo.AllowedDevices",
	"ProcInfo.DeniedDevices", "ProcStatus.WorkDir", "ProcStatus.Sandbox", "ProcStatus.Net", "ProcInfo.ReadRoots", "ProcInfo.MCPMounts", "ProcInfo.MCPDown", "Spending.Model", "Spending.Provider", "Spending.Day",
}

// plant puts a canary into every text of a value, and the name of the field into those that are left alone.
func plant(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem(), field)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[types.ExitStatus]() {
			v.Set(reflect.ValueOf(types.ExitStatus{Reason: canary, Err: types.Errorf(types.ErrDriver, "X", "", "the key %s is wrong", canary)}))
			return
		}
		if v.Type().PkgPath() == "time" {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				plant(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"k":"` + canary + `"}`))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0), field)
	case reflect.Map: // what its keys name stays, as the names of fields do
		value := reflect.New(v.Type().Elem()).Elem()
		plant(value, field)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.String:
		if slices.Contains(structural, field) {
			v.SetString("left-alone " + field)
		} else {
			v.SetString(canary)
		}
	}
}

// A field that is added later is concealed, or is named above.
func TestNoFieldOfARecordKeepsASecret(t *testing.T) {
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: canary})
	var r Record
	plant(reflect.ValueOf(&r).Elem(), "")
	var info ProcInfo
	plant(reflect.ValueOf(&info).Elem(), "")
	before := fmt.Sprintf("%+v", jsonOf(t, r))
	for name, v := range map[string]any{"record": r.Concealed(set), "info": info.Concealed(set)} {
		if s := jsonOf(t, v); strings.Contains(s, canary) || !strings.Contains(s, "[secret KEY]") {
			t.Errorf("%s: %s", name, s)
		}
	}
	if after := jsonOf(t, r); after != before {
		t.Errorf("the record that was handed in is changed:\n%s\n%s", before, after)
	}
	if clean := r.Concealed(nil); clean.Message != r.Message || clean.Step != r.Step {
		t.Error("without secrets something is copied")
	}
	if err := r.Concealed(set).Marker.Exit.Err; types.CodeOf(err) != types.ErrDriver || !strings.Contains(err.Error(), "the key [secret KEY] is wrong") {
		t.Errorf("the error is %v", err)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAConcealedRecordCanBeWritten(t *testing.T) {
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: canary}, redact.Secret{Name: "NUMBER", Value: "1234567890123"})
	m := rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "1", Name: "x", Input: json.RawMessage(`{"n":1234567890123,"` + canary + `":"a\n` + canary + `"}`)}}}
	clean := Record{Kind: KindMessage, Message: &m}.Concealed(set)
	if got := string(clean.Message.ToolCalls[0].Input); got != `{"n":"[secret NUMBER]","[secret KEY]":"a\n[secret KEY]"}` || !json.Valid([]byte(got)) {
		t.Error(got)
	}
}

func TestADirectoryKeepsItsNameWhatTheSecretsAre(t *testing.T) {
	set := new(redact.Set)
	set.Add(redact.Secret{Name: "KEY", Value: "project-1234"})
	in := Settled{ProcInfo: ProcInfo{ProcStatus: types.ProcStatus{WorkDir: "/home/u/project-1234", Intent: "say project-1234"}}, SystemPrompt: "it is project-1234",
		Git: &GitTold{Text: "on branch project-1234"}, Body: &BodyRecord{Kind: "k", Spec: json.RawMessage(`{"a":"project-1234"}`)}}
	r := Record{Kind: KindMarker, Marker: &Marker{Name: MarkerSpawn, Detail: json.RawMessage(jsonOf(t, in))}}
	var out Settled
	if err := json.Unmarshal(r.Concealed(set).Marker.Detail, &out); err != nil {
		t.Fatal(err)
	}
	if out.WorkDir != in.WorkDir || out.Intent != "say [secret KEY]" || out.SystemPrompt != "it is [secret KEY]" || out.Git.Text != "on branch [secret KEY]" || string(out.Body.Spec) != `{"a":"[secret KEY]"}` {
		t.Errorf("%+v", out)
	}
}
