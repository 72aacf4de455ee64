package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ClearBlock overwrites the block in which the system has handed this program its environment, and which it shows to whoever may read
// the memory. The runtime of Go has copied it: the variables keep their values. It is called before HideMemory, after which nobody but root
// may write there.
func ClearBlock() error {
	fields, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return fmt.Errorf("clear the environment: %w", err)
	}
	// See proc_pid_stat(5): env_start and env_end are the fields 50 and 51, the first behind the name is the third.
	rest := bytes.Fields(fields[bytes.LastIndexByte(fields, ')')+1:])
	if len(rest) < 49 {
		return fmt.Errorf("clear the environment: the system does not say where it is")
	}
	begin, err := strconv.ParseUint(string(rest[47]), 10, 63)
	if err != nil {
		return fmt.Errorf("clear the environment: %w", err)
	}
	end, err := strconv.ParseUint(string(rest[48]), 10, 63)
	if err != nil || end <= begin || end-begin > 8<<20 {
		return fmt.Errorf("clear the environment: the system does not say where it ends")
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("clear the environment: %w", err)
	}
	defer mem.Close()
	if _, err := mem.WriteAt(make([]byte, end-begin), int64(begin)); err != nil {
		return fmt.Errorf("clear the environment: %w", err)
	}
	return nil
}
