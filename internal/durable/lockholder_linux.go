package durable

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LockHolder returns the PID of whoever holds the lock of flock(2) on an open file; "" if that is not known. The kernel's table says it,
// also when the file has lost its name: see proc_locks(5).
func LockHolder(f *os.File) string {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return ""
	}
	table, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer table.Close()
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// 1: FLOCK  ADVISORY  WRITE 4711 fe:01:1234 0 EOF
		if w := strings.Fields(lines.Text()); len(w) >= 6 && w[1] == "FLOCK" && w[5] == file && w[4] != "0" && w[4] != "-1" {
			return w[4]
		}
	}
	return ""
}
