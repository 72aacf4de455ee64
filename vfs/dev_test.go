package vfs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rnix/types"
	"rnix/vfs"
)

// note is a factory whose files say which device was opened with which subpath.
func note(device string) vfs.VFSFileFactory {
	return func(sub string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
		f := vfs.NewRequestFile(vfs.FileStat{Name: device + " " + sub}, func(context.Context, vfs.Caller, []byte) ([]byte, error) { return nil, nil })
		return f, nil
	}
}

func TestLongestPathWinsAtItsBoundary(t *testing.T) {
	r := vfs.NewDeviceRegistry()
	for _, p := range []string{"/dev/fs", "/dev/fs/deep", "/dev/llm/claude", "/proc", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16"} {
		if err := r.Register(p, note(p)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ path, want string }{
		{"/dev/fs", "/dev/fs "}, {"/dev/fs/", "/dev/fs /"}, {"/dev/fs/a/b", "/dev/fs /a/b"}, {"/dev/fs/deep", "/dev/fs/deep "},
		{"/dev/fs/deep/x", "/dev/fs/deep /x"}, {"/dev/fs/deeper", "/dev/fs /deeper"}, {"/dev/fs//x", "/dev/fs //x"}, {"/dev/fs/../llm", "/dev/fs /../llm"},
		{"/proc/1/status", "/proc /1/status"}, {"/proc" + strings.Repeat("/x", 500), "/proc " + strings.Repeat("/x", 500)},
		{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16 "},
		{"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17", "/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16 /17"},
		{"/dev/fsx", ""}, {"/dev", ""}, {"/", ""}, {"/dev/llm", ""}, {"/dev/llm/claudette", ""}, {"/dev//fs", ""}, {"/x/../dev/fs", ""},
	} {
		f, err := r.Open(c.path, vfs.OpenRead)
		if c.want == "" {
			if types.CodeOf(err) != types.ErrNotFound {
				t.Errorf("%s: got %v, want NOT_FOUND", c.path, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if st, _ := f.Stat(); st.Name != c.want {
			t.Errorf("%s: served by %q, want %q", c.path, st.Name, c.want)
		}
		_ = f.Close() // nothing was written
	}
	for _, p := range []string{"", "dev/fs", "/dev/fs\x00"} {
		if _, err := r.Open(p, vfs.OpenRead); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("open %q: %v", p, err)
		}
	}
}

func TestAPathIsTakenOnceAndGivenBack(t *testing.T) {
	r := vfs.NewDeviceRegistry()
	if err := r.Register("/a", note("a")); err != nil {
		t.Fatal(err)
	}
	if err := r.Register("/a", note("b")); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a second device: %v", err)
	}
	f, err := r.Open("/a/x", vfs.OpenRead)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := r.Unregister("/a"); err != nil {
		t.Fatal(err)
	}
	if err := r.Unregister("/a"); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("a second Unregister: %v", err)
	}
	if _, err := f.Stat(); err != nil {
		t.Errorf("a file that was open is gone with its device: %v", err)
	}
	if err := r.Register("/a", note("c")); err != nil {
		t.Errorf("the path was not given back: %v", err)
	}
	for _, p := range []string{"/", "/a/", "/a//b", "/a/../b", "b", "", strings.Repeat("/x", 17)} {
		if err := r.Register(p, note("x")); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("register %q: %v", p, err)
		}
	}
	outside := []vfs.Tool{{Name: "t", Path: "/ab"}}
	if err := r.RegisterTools("/b", note("b"), outside); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a tool outside of its device: %v", err)
	}
}

// BenchmarkLookup opens files among 1,000 devices, the factory's call included; it must not allocate.
// BenchmarkBareMap, which only probes a map with the path and its parents, is what to compare it with.
func BenchmarkLookup(b *testing.B) {
	r := vfs.NewDeviceRegistry()
	file := vfs.NewRequestFile(vfs.FileStat{}, nil)
	for i := range 1000 {
		if err := r.Register(fmt.Sprintf("/mnt/mcp/%d-server", i), func(string, vfs.OpenFlag) (vfs.VFSFile, error) { return file, nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_, _ = r.Open(benchPaths[i%len(benchPaths)], vfs.OpenRead) // every path is served
	}
}

func BenchmarkBareMap(b *testing.B) {
	m := make(map[string]int, 1000)
	for i := range 1000 {
		m[fmt.Sprintf("/mnt/mcp/%d-server", i)] = i
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := benchPaths[i%len(benchPaths)]
		for end := len(p); end > 0; end = strings.LastIndexByte(p[:end], '/') {
			if _, ok := m[p[:end]]; ok {
				break
			}
		}
	}
}

// benchPaths are exact paths and paths below a device. Misses make an error and are left out: they
// allocate it, wherever the time goes.
var benchPaths = func() (out []string) {
	for i := range 256 {
		p := fmt.Sprintf("/mnt/mcp/%d-server", i*3)
		if i%3 != 0 {
			p += "/tools/search"
		}
		out = append(out, p)
	}
	return out
}()
