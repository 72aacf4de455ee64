package daemon

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"rnix/internal/proc"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// paths answers what concerns the name space.
type paths struct{ *Daemon }

func (d paths) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.ReadPath, d.readPath)
	on(d.Daemon, s, ipc.WritePath, d.writePath)
	on(d.Daemon, s, ipc.ListPath, d.listPath)
}

// maxRead is how much a read returns when nobody says.
const maxRead = 1 << 20

// openAs opens a path as a process, or as the user in the request's directory. A caller inside an
// agent opens as that agent.
func (d paths) openAs(peer *ipc.Peer, req ipc.PathRequest, flags vfs.OpenFlag) (vfs.VFSFile, error) {
	owner, inside := d.agentOf(peer)
	if inside && owner == 0 {
		return nil, service.Outside("Open", owner, "")
	}
	if req.As != "" {
		t, err := processes(d).alive("Open", req.As)
		if err != nil {
			return nil, err
		}
		if inside && !d.inSubtree(owner, t.PID) {
			return nil, service.Outside("Open", owner, "open paths for its own subtree only")
		}
		owner, inside = t.PID, true
	}
	if inside {
		return d.kernel.OpenAs(owner, req.Path, flags)
	}
	p, err := d.profileOf(req.Cwd, req.Env, false)
	if err != nil {
		return nil, err
	}
	if flags != vfs.OpenRead {
		if err := mayStart(d.Daemon, "Open", p); err != nil {
			return nil, err
		}
	}
	caller, err := d.userCaller(p)
	if err != nil {
		return nil, err
	}
	return d.kernel.VFS().OpenAs(caller, req.Path, flags)
}

// userCaller is the user as devices see it: not a process, in the client's directory, with the whole
// file system to read.
func (d paths) userCaller(p *profile) (vfs.Caller, error) {
	if err := os.MkdirAll(d.userScratch, 0o700); err != nil {
		return vfs.Caller{}, types.Errorf(types.ErrStorage, "Open", d.userScratch, "%w", err)
	}
	return vfs.Caller{WorkDir: p.cwd, ReadRoots: []string{"/"}, Secret: p.lookup, Profile: p, Env: proc.ComposeEnv(p.env, nil, nil), Scratch: d.userScratch}, nil
}

func (d paths) readPath(_ context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.PathResponse, error) {
	f, err := d.openAs(peer, req, vfs.OpenRead)
	if err != nil {
		return ipc.PathResponse{}, err
	}
	defer f.Close()
	return readUpTo(f, req)
}

func (d paths) writePath(ctx context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.PathResponse, error) {
	f, err := d.openAs(peer, req, vfs.OpenReadWrite)
	if err != nil {
		return ipc.PathResponse{}, err
	}
	defer f.Close()
	if err := f.Write(ctx, req.Data); err != nil {
		return ipc.PathResponse{}, service.Named(err, "Write", req.Path)
	}
	return readUpTo(f, req)
}

// readUpTo reads at most what the request asks for, and says whether there was more.
func readUpTo(f vfs.VFSFile, req ipc.PathRequest) (ipc.PathResponse, error) {
	limit := req.Max
	if limit <= 0 {
		limit = maxRead
	}
	limit = min(limit, ipc.MaxBody)
	r := ipc.PathResponse{Data: []byte{}}
	for {
		b, err := f.Read(limit + 1 - len(r.Data))
		r.Data = append(r.Data, b...)
		if len(r.Data) > limit {
			r.Data, r.Cut = r.Data[:limit], true
			return r, nil
		}
		switch {
		case errors.Is(err, io.EOF), err == nil && len(b) == 0:
			return r, nil
		case err != nil:
			return r, service.Named(err, "Read", req.Path)
		}
	}
}

// device describes a device as an entry of the directory above it. One that the caller may not open is
// listed all the same.
func (d paths) device(peer *ipc.Peer, req ipc.PathRequest, path, name string) ipc.PathEntry {
	e := ipc.PathEntry{Name: name, Size: -1, Type: "device"}
	req.Path = path
	if f, err := d.openAs(peer, req, vfs.OpenRead); err == nil {
		defer f.Close()
		if st, err := f.Stat(); err == nil {
			e.IsDir = st.IsDir || len(namesOf(f)) > 0
		}
	}
	return e
}

// namesOf returns the names of what is below a file that does not list it line by line; nil = it does, or there is nothing.
func namesOf(f vfs.VFSFile) []string {
	if l, ok := f.(vfs.Lister); ok {
		return l.Names()
	}
	return nil
}

// maxStat bounds how many entries of a directory are looked at one by one.
const maxStat = 2000

// onHost reports whether what stands in dir are files of the host.
func onHost(dir string) bool {
	return strings.HasPrefix(dir, "/dev/fs/") || strings.HasPrefix(dir, "/dev/workspace/")
}

// measure fills in the size and the time of an entry of the directory that req names, if the caller may
// open it.
func (d paths) measure(peer *ipc.Peer, req ipc.PathRequest, e *ipc.PathEntry) {
	req.Path += "/" + e.Name
	if f, err := d.openAs(peer, req, vfs.OpenRead); err == nil {
		defer f.Close()
		if st, err := f.Stat(); err == nil {
			e.Size, e.Mtime = st.Size, st.Mtime
		}
	}
}

// listPath lists a directory: the entries of a device's file, and the devices below the path.
func (d paths) listPath(_ context.Context, peer *ipc.Peer, req ipc.PathRequest) (ipc.ListPathResponse, error) {
	dir := "/" + strings.Trim(req.Path, "/")
	entries := map[string]ipc.PathEntry{}
	for _, path := range d.devices.Paths() {
		if path != dir && vfs.Below(path, dir) {
			name, _, deeper := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(path, dir), "/"), "/")
			e := ipc.PathEntry{Name: name, IsDir: deeper, Size: -1, Type: "dir"}
			if !deeper {
				e = d.device(peer, req, path, name)
			}
			entries[name] = e
		}
	}
	req.Path = dir
	f, err := d.openAs(peer, req, vfs.OpenRead)
	if err == nil {
		defer f.Close()
		st, serr := f.Stat()
		names := namesOf(f)
		if serr == nil && (st.IsDir || len(names) > 0) {
			if len(names) == 0 {
				r, rerr := readUpTo(f, req)
				if rerr != nil {
					return ipc.ListPathResponse{}, rerr
				}
				names = slices.Collect(strings.Lines(string(r.Data)))
			}
			for _, name := range names {
				name = strings.TrimSuffix(name, "\n")
				isDir := strings.HasSuffix(name, "/")
				name = strings.TrimSuffix(name, "/")
				if _, known := entries[name]; !known && name != "" {
					e := ipc.PathEntry{Name: name, IsDir: isDir, Size: -1, Type: "file"}
					if isDir {
						e.Type = "dir"
					} else if len(entries) < maxStat && onHost(dir) {
						d.measure(peer, req, &e)
					}
					entries[name] = e
				}
			}
		} else if len(entries) == 0 {
			if serr != nil {
				return ipc.ListPathResponse{}, service.Named(serr, "Stat", dir)
			}
			entries[st.Name] = ipc.PathEntry{Name: orElse(st.Name, dir), Size: st.Size, Mtime: st.Mtime, Type: st.Type}
		}
	} else if len(entries) == 0 {
		return ipc.ListPathResponse{}, err
	}
	resp := ipc.ListPathResponse{Entries: make([]ipc.PathEntry, 0, len(entries))}
	for _, e := range entries {
		resp.Entries = append(resp.Entries, e)
	}
	slices.SortFunc(resp.Entries, func(a, b ipc.PathEntry) int { return strings.Compare(a.Name, b.Name) })
	return resp, nil
}
