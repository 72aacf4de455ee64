package workspace

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"rnix/drivers/fs"
	"rnix/internal/soak"
	"rnix/types"
)

// Whoever reads a file while it is replaced, or after a crash in the middle of that, sees the old
// content or the new one, whole.
func TestReaderSeesTheOldOrTheNewContentWhole(t *testing.T) {
	const size = 256 << 10
	rounds := soak.Pick(t, "writes", 8, 20)
	content := func(n int) string { return strings.Repeat(string(rune('a'+n%26)), size) }
	d := newDesk(t, "f", content(0))
	d.must(1, "read_file", `{"path":"f","limit":1}`)
	done := make(chan struct{})
	var readers sync.WaitGroup
	reads := 0
	readers.Go(func() {
		for {
			got := d.content("f")
			if len(got) != size || strings.Count(got, got[:1]) != size {
				t.Errorf("a reader saw %d bytes of %d, or a mixture", len(got), size)
				return
			}
			if reads++; reads > 5 {
				select {
				case <-done:
					return
				default:
				}
			}
		}
	})
	for n := range rounds {
		d.must(1, "write_file", fmt.Sprintf(`{"path":"f","content":%q}`, content(n+1)))
	}
	close(done)
	readers.Wait()
}

// A write that the disk refuses leaves the old content and nothing beside it.
func TestFailedWriteKeepsTheOldContent(t *testing.T) {
	d := newDesk(t, "f", "old\n")
	d.must(1, "read_file", `{"path":"f"}`)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skip("needs limits on files: ", err)
	}
	small := was
	small.Cur = 4 << 20 // the limit is the whole program's: room for the files of the test itself
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Skip("needs limits on files: ", err)
	}
	_, err := d.run(1, "write_file", fmt.Sprintf(`{"path":"f","content":%q}`, strings.Repeat("n", 5<<20)))
	if rerr := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); rerr != nil {
		t.Fatal(rerr)
	}
	if types.CodeOf(err) == "" {
		t.Error("a write that did not fit succeeded")
	}
	if got := d.content("f"); got != "old\n" {
		t.Errorf("f holds %d bytes", len(got))
	}
	if left, _ := filepath.Glob(filepath.Join(d.dir, fs.TempPrefix+"*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
