package mcpserve

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

// A question that cannot be asked is answered with an error, and nothing else: then the call is not made.
func TestAQuestionThatCannotBeAsked(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kernel.json")
	for name, c := range map[string]struct {
		in   io.Reader
		code types.ErrCode
	}{
		"no file":  {strings.NewReader("{}"), types.ErrNotFound},
		"too long": {bytes.NewReader(make([]byte, maxQuestion+1)), types.ErrInvalid},
		"broken":   {io.MultiReader(strings.NewReader("{"), failing{}), types.ErrDriver},
	} {
		var out bytes.Buffer
		if err := Judge(t.Context(), missing, c.in, &out); types.CodeOf(err) != c.code || out.Len() > 0 {
			t.Errorf("%s: %v %q, want %s", name, err, &out, c.code)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }
