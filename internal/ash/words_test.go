package ash

import (
	"testing"

	"rnix/types"
)

// An error names its path once, also where the device knows the file by a shorter one.
func TestErrorNamesAPathOnce(t *testing.T) {
	for _, c := range []struct{ device, path, want string }{
		{"/nofile", "/dev/fs/nofile", "not there"},
		{"/dev/fs/nofile", "/dev/fs/nofile", "not there"},
		{"/other", "/dev/fs/nofile", "/other: not there"},
		{"", "/dev/fs/nofile", "not there"},
	} {
		if got := withoutPath(types.Errorf(types.ErrNotFound, "Open", c.device, "not there"), c.path); got != c.want {
			t.Errorf("%q of %q: %q", c.device, c.path, got)
		}
	}
}
