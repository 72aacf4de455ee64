package durable

import (
	"testing"

	"rnix/types"
)

func TestWhatIsMountedInADirectoryIsFound(t *testing.T) {
	const mounts = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n" +
		"36 21 0:40 / /srv/a/work/mnt rw,nosuid shared:7 - fuse.sshfs host: rw\n" +
		"37 21 8:1 /home /srv/with\\040space/x rw - ext4 /dev/sda1 rw\n" +
		"torn\n"
	for dir, want := range map[string]string{
		"/srv/a": "/srv/a/work/mnt", "/srv/a/work/mnt": "/srv/a/work/mnt", "/srv/with space": "/srv/with space/x", "/": "/",
		"/srv/a/work/m": "", "/srv/a/work/mnt/below": "", "/srv/b": "",
	} {
		if got := mountedIn(mounts, dir); got != want {
			t.Errorf("in %s: %q, want %q", dir, got, want)
		}
	}
	if err := CheckMounts(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := CheckMounts("/"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("what lies at / may be removed: %v", err)
	}
}
