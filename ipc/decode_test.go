package ipc

import "testing"

func TestTargetIsNamedByItsPIDToo(t *testing.T) {
	var r StepsRequest
	if err := decodeRequest("list_steps", []byte(`{"pid":4,"limit":3}`), &r); err != nil || r.Target != "4" || r.Limit != 3 {
		t.Errorf("%+v %v", r, err)
	}
	var own ResumeRequest
	for _, body := range []string{`{"pid":-4}`, `{"pid":"x"}`, `{"pid":4,"target":"night"}`} {
		if err := decodeRequest("list_steps", []byte(body), &r); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
	if err := decodeRequest("resume", []byte(`{"pid":18446744073709551615}`), &own); err != nil || own.Target != "18446744073709551615" {
		t.Errorf("%+v %v", own, err)
	}
}
