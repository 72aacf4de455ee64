package paths

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"rnix/internal/profile"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// space is a name space, and all that the service needs of others.
type space struct {
	files   map[string]*file
	owner   types.PID // of who asks
	inside  bool
	mistake error
	paused  types.PID
	opened  []string // by whom, and what
}

// file is a file or a directory.
type file struct {
	stat    vfs.FileStat
	text    string
	written string
}

// handle is a file that is open.
type handle struct {
	*vfs.RequestFile
	of *file
}

func (h handle) Write(_ context.Context, data []byte) error {
	h.of.written = string(data)
	return nil
}

func text(s string) *file {
	return &file{stat: vfs.FileStat{Name: "f", Size: int64(len(s)), Type: "file"}, text: s}
}

func dir(names ...string) *file {
	return &file{stat: vfs.FileStat{Name: "d", IsDir: true, Type: "dir"}, text: strings.Join(names, "\n") + "\n"}
}

func (s *space) get(who any, path string) (vfs.VFSFile, error) {
	s.opened = append(s.opened, fmt.Sprint(who, " ", path))
	if f := s.files[path]; f != nil {
		return handle{vfs.NewTextFile(f.stat, f.text), f}, nil
	}
	return nil, types.Errorf(types.ErrNotFound, "Open", path, "there is no such file")
}

func (s *space) OpenAs(pid types.PID, path string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
	return s.get(pid, path)
}

// user opens for who is no process.
type user struct{ *space }

func (u user) OpenAs(_ vfs.Caller, path string, _ vfs.OpenFlag) (vfs.VFSFile, error) {
	return u.get("user", path)
}

func (s *space) Paths() []string { return []string{"/dev/fs", "/dev/shell", "/proc"} }

func (s *space) Read(cwd string, _ []string, _ bool) (*profile.Profile, error) {
	return &profile.Profile{Cwd: cwd}, nil
}

func (s *space) MayStart(string, *profile.Profile) error { return s.mistake }

func (s *space) AgentOf(*ipc.Peer) (types.PID, bool) { return s.owner, s.inside }

func (s *space) Alive(_, text string) (pid types.PID, err error) {
	_, err = fmt.Sscan(text, &pid)
	return pid, err
}

func (s *space) InSubtree(root, pid types.PID) bool { return pid >= root }

func (s *space) Paused(pid types.PID) bool { return pid == s.paused }

func TestAPersonDoesNothingAsAProcessThatIsPaused(t *testing.T) {
	s := &space{files: map[string]*file{"/dev/x": text("hello")}, paused: 3}
	req := ipc.PathRequest{Path: "/dev/x", As: "3", Data: []byte("do")}
	if _, err := serve(t, s).write(t.Context(), nil, req); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), "rnix resume 3") || len(s.opened) > 0 {
		t.Errorf("%v, opened %q", err, s.opened)
	}
	if _, err := serve(t, s).read(t.Context(), nil, req); err != nil {
		t.Errorf("it is read all the same: %v", err)
	}
	s.owner, s.inside = 3, true // its own command, which stands still with it
	if _, err := serve(t, s).write(t.Context(), nil, req); err != nil {
		t.Errorf("its own command: %v", err)
	}
	s.paused = 4
	if _, err := serve(t, s).write(t.Context(), nil, req); err != nil {
		t.Errorf("another one is paused: %v", err)
	}
}

func serve(t *testing.T, s *space) *Service {
	return &Service{Agents: s, Space: user{s}, Devices: s, Profiles: s, Callers: s, Scratch: t.TempDir()}
}

func TestPathsAreOpenedWithTheRightsOfWhoAsks(t *testing.T) {
	for name, c := range map[string]struct {
		owner  types.PID
		inside bool
		as     string
		want   string // who opens; empty = it is refused
	}{
		"a person":                          {want: "user"},
		"a person for a process":            {as: "3", want: "3"},
		"an agent":                          {owner: 5, inside: true, want: "5"},
		"an agent for its child":            {owner: 5, inside: true, as: "6", want: "6"},
		"an agent for another":              {owner: 5, inside: true, as: "4"},
		"from some agent that is not known": {inside: true},
	} {
		s := &space{files: map[string]*file{"/proc/x": text("hello")}, owner: c.owner, inside: c.inside}
		r, err := serve(t, s).read(t.Context(), nil, ipc.PathRequest{Path: "/proc/x", As: c.as})
		if c.want == "" {
			if types.CodeOf(err) != types.ErrPermission || len(s.opened) > 0 {
				t.Errorf("%s: %v, opened %q", name, err, s.opened)
			}
			continue
		}
		if err != nil || string(r.Data) != "hello" || len(s.opened) != 1 || s.opened[0] != c.want+" /proc/x" {
			t.Errorf("%s: %+v, %v, opened %q", name, r, err, s.opened)
		}
	}
}

func TestMistakeInTheConfigurationLetsPathsBeReadAndNotWritten(t *testing.T) {
	f := text("there")
	s := &space{files: map[string]*file{"/dev/shell": f}, mistake: types.Errorf(types.ErrInvalid, "Open", "", "a mistake")}
	p := serve(t, s)
	if _, err := p.read(t.Context(), nil, ipc.PathRequest{Path: "/dev/shell"}); err != nil {
		t.Error(err)
	}
	req := ipc.PathRequest{Path: "/dev/shell", Data: []byte("rm")}
	if _, err := p.write(t.Context(), nil, req); types.CodeOf(err) != types.ErrInvalid || f.written != "" {
		t.Errorf("%v, written %q", err, f.written)
	}
	s.mistake = nil
	if _, err := p.write(t.Context(), nil, req); err != nil || f.written != "rm" {
		t.Errorf("%v, written %q", err, f.written)
	}
}

func TestReadSaysWhetherThereIsMore(t *testing.T) {
	for most, want := range map[int]string{0: "0123456789", 10: "0123456789", 4: "0123", 99: "0123456789"} {
		s := &space{files: map[string]*file{"/proc/x": text("0123456789")}}
		r, err := serve(t, s).read(t.Context(), nil, ipc.PathRequest{Path: "/proc/x", Max: most})
		if err != nil || string(r.Data) != want || r.Cut != (len(want) < 10) {
			t.Errorf("%d: %q, cut %v, %v", most, r.Data, r.Cut, err)
		}
	}
}

// listed returns the names in a directory, directories with a slash.
func listed(t *testing.T, s *space, path string) (names []string, err error) {
	r, err := serve(t, s).list(t.Context(), nil, ipc.PathRequest{Path: path})
	for _, e := range r.Entries {
		if e.IsDir {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	return names, err
}

func TestListShowsDevicesAndWhatTheyListTogether(t *testing.T) {
	s := &space{files: map[string]*file{"/dev/fs": dir("sub/", "a"), "/dev/fs/a": text("12345"), "/proc": dir("1/", "self/"), "/proc/1/status": text("x")}}
	for path, want := range map[string]string{
		"/": "dev/ proc/", "dev/": "fs/ shell", "/dev/fs": "a sub/", "/proc": "1/ self/", "/proc/1/status": "f",
	} {
		if got, err := listed(t, s, path); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := listed(t, s, "/none"); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}

func TestListOfManyEntriesHasAllOfThemOrSaysThatItHasNot(t *testing.T) {
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("%099d", i)) // with the end of the line 100 bytes
		}
		return out
	}
	s := &space{files: map[string]*file{"/dev/x": dir(names(20_000)...)}} // 2 MB, and a read has 1 MiB
	got, err := listed(t, s, "/dev/x")
	if err != nil || len(got) != 20_000 || len(got[len(got)-1]) != 99 {
		t.Errorf("%d names, %v", len(got), err)
	}
	s.files["/dev/x"] = dir(names(maxNames/100 + 1)...)
	if got, err := listed(t, s, "/dev/x"); types.CodeOf(err) != types.ErrExhausted || len(got) > 0 {
		t.Errorf("%d names, %v", len(got), err)
	}
}
