package durable

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rnix/types"
)

// CheckMounts refuses a directory below which another file system, or a directory of another place, is mounted: who removes
// all that is in it would remove what lies there. CONFLICT, with the mend. What cannot be asked for is taken as not mounted.
func CheckMounts(dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // another system has none
	if at := mountedIn(string(mounts), dir); at != "" {
		return types.Errorf(types.ErrConflict, "Remove", dir, "something is mounted at %s, and what lies there would be removed with it: unmount that first", at)
	}
	return nil
}

// mountedIn returns the first mount at a directory or below it; "" = there is none.
func mountedIn(mountinfo, dir string) string {
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := MountPath(fields[4])
		if at == dir || strings.HasPrefix(at, strings.TrimSuffix(dir, "/")+"/") {
			return at
		}
	}
	return ""
}

// MountPath returns a path of a field of /proc/PID/mountinfo: it takes back the octal escapes that proc_pid_mountinfo(5)
// describes. What is none stays.
func MountPath(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
