package vfs

import (
	"errors"
	"strings"
	"testing"

	"rnix/types"
)

func TestCallThatWasCutOffIsNamedOnce(t *testing.T) {
	inner := types.Errorf(types.ErrUnavailable, "Call", "oa", "the stream was cut")
	err := withPID(&CutOff{Err: inner, Provider: "oa", Answer: 3}, "Write", 7, "/dev/llm/oa")
	c, sent := errors.AsType[*CutOff](err)
	if !sent || c.Answer != 3 || err.Error() != "Call oa (pid 7): the stream was cut" || types.CodeOf(err) != types.ErrUnavailable {
		t.Errorf("%v", err)
	}
	if inner.PID != 0 || strings.Contains(inner.Error(), "pid") {
		t.Errorf("the cause has changed: %v", inner)
	}
}
