package gc

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"rnix/internal/durable"
	"rnix/internal/durable/faultfs"
	"rnix/internal/step"
	"rnix/types"
)

// item is an entry of an archive that is made by hand.
type item struct {
	tar.Header
	text string
}

func file(name, text string) item {
	return item{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}, text}
}

func document(name string, v any) item {
	b, _ := json.Marshal(v)
	return file(name, string(b))
}

func packed(items ...item) []byte {
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, i := range items {
		if err := w.WriteHeader(&i.Header); err != nil {
			panic(err)
		}
		_, _ = io.WriteString(w, i.text) // a header may promise more than is there
	}
	_ = w.Flush()
	_, _ = gz.Write(make([]byte, 1024))
	_ = gz.Close()
	return b.Bytes()
}

// honest returns the archive of files with what stands in them.
func honest(id types.UUID, entries ...item) []item {
	head := step.ArchiveHead{V: 1, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}}
	m := manifest{V: 1, Files: []packedFile{}}
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			sum := sha256.Sum256([]byte(e.text))
			m.Files = append(m.Files, packedFile{strings.TrimPrefix(e.Name, inArchive), e.Size, hex.EncodeToString(sum[:])})
			head.Files, head.Bytes = head.Files+1, head.Bytes+e.Size
		}
	}
	return append(append([]item{document(step.ArchiveHeadFile, head)}, entries...), document(manifestFile, m))
}

func special(flag byte, name, target string) item {
	return item{tar.Header{Typeflag: flag, Name: name, Linkname: target}, ""}
}

func TestHostileArchiveIsRefusedAndTouchesNothing(t *testing.T) {
	id := uuid(7)
	records := file("history/"+step.StepsFile, "records\n")
	deep := "history/" + strings.Repeat("d/", maxDepth)
	for name, b := range map[string][]byte{
		"empty":   {},
		"no gzip": []byte("PK\x03\x04 not this"),
		"no tar": func() []byte {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			w.Write([]byte("x"))
			w.Close()
			return b.Bytes()
		}(),
		"no head":                       packed(records),
		"only a head":                   packed(document(step.ArchiveHeadFile, step.ArchiveHead{V: 1, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}})),
		"head of another":               packed(honest(uuid(8), records)...),
		"head of nobody":                packed(honest(types.UUID{}, records)...),
		"head of a newer program":       packed(append([]item{document(step.ArchiveHeadFile, step.ArchiveHead{V: 2, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}})}, honest(id, records)[1:]...)...),
		"absolute path":                 packed(honest(id, file("/etc/passwd", "x"))...),
		"path beside the history":       packed(honest(id, file("history/../../../out", "x"))...),
		"path up":                       packed(honest(id, file("../out", "x"))...),
		"path without the prefix":       packed(honest(id, file("out", "x"))...),
		"dots inside":                   packed(honest(id, file("history/a/../b", "x"))...),
		"a dot":                         packed(honest(id, file("history/./b", "x"))...),
		"two slashes":                   packed(honest(id, file("history//b", "x"))...),
		"no name":                       packed(honest(id, special(tar.TypeDir, "history/", ""))...),
		"directory is the history":      packed(honest(id, special(tar.TypeDir, "history/./", ""))...),
		"without its directory":         packed(honest(id, file("history/a/b", "x"))...),
		"file as a directory":           packed(honest(id, file("history/a", "x"), file("history/a/b", "x"))...),
		"twice":                         packed(honest(id, records, records)...),
		"too deep":                      packed(honest(id, file(deep+"x", "x"))...),
		"too long":                      packed(honest(id, file("history/"+strings.Repeat("n", 256), "x"))...),
		"symbolic link":                 packed(honest(id, special(tar.TypeSymlink, "history/a", "/etc"), file("history/a/b", "x"))...),
		"hard link":                     packed(honest(id, special(tar.TypeLink, "history/a", "/etc/passwd"))...),
		"device":                        packed(honest(id, special(tar.TypeChar, "history/a", ""))...),
		"pipe":                          packed(honest(id, special(tar.TypeFifo, "history/a", ""))...),
		"size that cannot be":           packed(document(step.ArchiveHeadFile, step.ArchiveHead{V: 1, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}, Files: 1, Bytes: 1 << 50}), item{tar.Header{Typeflag: tar.TypeReg, Name: "history/a", Size: 1 << 50}, "x"}),
		"size over what the head says":  packed(document(step.ArchiveHeadFile, step.ArchiveHead{V: 1, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}, Files: 1, Bytes: 1}), file("history/a", "xx"), document(manifestFile, manifest{V: 1})),
		"files over what the head says": packed(document(step.ArchiveHeadFile, step.ArchiveHead{V: 1, Info: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}}}), file("history/a", ""), document(manifestFile, manifest{V: 1})),
		"other content than listed":     packed(append(honest(id, records)[:1], file(records.Name, "RECORDS\n"), honest(id, records)[2])...),
		"less than listed":              packed(append(honest(id, records)[:1], honest(id, records)[2])...),
		"no manifest":                   packed(honest(id, records)[:2]...),
		"behind the manifest":           packed(append(honest(id, records), file("history/b", "x"))...),
		"behind the end":                append(packed(honest(id, records)...), 'x'),
		"a second stream":               append(packed(honest(id, records)...), packed(honest(id, records)...)...),
	} {
		t.Run(name, func(t *testing.T) {
			fsys, h := memory(t, nil)
			must(t, fsys.Mkdir("/data/archive", 0o700), durable.WriteFile(fsys, step.ArchivePath("/data", id), b, durable.Durable))
			before := tree(t, fsys, "/data")
			_, err := h.c.Unarchive(t.Context(), id, false)
			if code := types.CodeOf(err); code != types.ErrStorage && code != types.ErrVersion || !strings.Contains(err.Error(), step.ArchivePath("/data", id)) {
				t.Errorf("%v", err)
			}
			if got := tree(t, fsys, "/data"); fmt.Sprint(got) != fmt.Sprint(before) {
				t.Errorf("left %v", got)
			}
		})
	}
	fsys, h := memory(t, nil)
	must(t, fsys.Mkdir("/data/archive", 0o700), durable.WriteFile(fsys, step.ArchivePath("/data", id), packed(honest(id, special(tar.TypeDir, "history/a/", ""), file("history/a/b", "x"), records)...), durable.Durable))
	if _, err := h.c.Unarchive(t.Context(), id, false); err != nil {
		t.Errorf("an honest one is refused, so that nothing was tested: %v", err)
	}
}

func TestArchiveThatIsDamagedAnywhereIsRefused(t *testing.T) {
	fsys, h := memory(t, nil)
	info := h.old(t, 1, 40)
	collect(t, h, Request{})
	path := step.ArchivePath("/data", info.UUID)
	good, err := durable.ReadFile(fsys, path)
	must(t, err)
	head, files, err := parseArchive(bytes.NewReader(good), int64(len(good)), ignore)
	must(t, err)
	want := fmt.Sprintf("%+v %+v", *head, files)
	for i := range good {
		for what, b := range map[string][]byte{"cut off": good[:i], "flipped": append(append(bytes.Clone(good[:i]), good[i]^0x55), good[i+1:]...)} {
			// Not every bit of a compressed file means something.
			head, files, err := parseArchive(bytes.NewReader(b), int64(len(b)), ignore)
			if err == nil && (what == "cut off" || fmt.Sprintf("%+v %+v", *head, files) != want) {
				t.Errorf("%s at byte %d: nothing was noticed", what, i)
			}
		}
	}
}

var ignore = unpacking{dir: func(string) error { return nil }, file: func(string, int64, io.Reader) error { return nil }}

func FuzzArchiveReader(f *testing.F) {
	id := uuid(7)
	records := file("history/"+step.StepsFile, "records\n")
	raw := func(items ...item) []byte {
		r, _ := gzip.NewReader(bytes.NewReader(packed(items...)))
		b, _ := io.ReadAll(r)
		return b
	}
	f.Add(raw(honest(id, records)...), true)
	f.Add(raw(honest(id, special(tar.TypeDir, "history/a/", ""), file("history/a/b", "x"), records)...), true)
	f.Add(raw(honest(id, file("history/../x", "x"))...), true)
	f.Add(raw(honest(id, special(tar.TypeSymlink, "history/a", "/"))...), true)
	f.Add(packed(honest(id, records)...), false)
	f.Fuzz(func(t *testing.T, b []byte, pack bool) {
		if pack { // the fuzzer sees through gzip this way
			var z bytes.Buffer
			w, _ := gzip.NewWriterLevel(&z, gzip.HuffmanOnly)
			_, _ = w.Write(b)
			_ = w.Close()
			b = z.Bytes()
		}
		if h, err := step.ReadArchiveHead(bytes.NewReader(b)); err == nil && h.Info.UUID == (types.UUID{}) {
			t.Error("a head of nobody")
		}
		mem := faultfs.New("/out", "/secret")
		outside := tree(t, mem, "/secret")
		dir := "/out"
		c := press{disk{fs: mem}}
		var bytesRead int64
		head, files, err := parseArchive(bytes.NewReader(b), int64(len(b)), unpacking{
			dir: func(name string) error { return mem.Mkdir(dir+"/"+name, 0o700) },
			file: func(name string, size int64, r io.Reader) error {
				if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
					t.Errorf("the name %q leads out", name)
				}
				bytesRead += size
				return c.writeFile(dir+"/"+name, size, r)
			},
		})
		if fmt.Sprint(tree(t, mem, "/secret")) != fmt.Sprint(outside) {
			t.Error("something was written outside")
		}
		if err != nil {
			return
		}
		if head.Files != len(files) || head.Bytes != bytesRead {
			t.Errorf("%+v, but %d files of %d bytes", head, len(files), bytesRead)
		}
		for _, f := range files {
			got, err := durable.ReadFile(mem, dir+"/"+f.Path)
			sum := sha256.Sum256(got)
			if err != nil || hex.EncodeToString(sum[:]) != f.SHA256 {
				t.Errorf("%s: %q, %v", f.Path, got, err)
			}
		}
	})
}
