package sandbox

import (
	"slices"
	"strconv"
)

// privateSize bounds each private directory, in bytes: they are in memory.
const privateSize = 1 << 30

// planBwrap writes the arguments of bubblewrap. Mounts are made in the order of the points, so a directory comes before what is
// mounted in it.
func planBwrap(plan *Plan, host Host, files Files) error {
	plan.Program, plan.Pinned = host.Program, host.Pins
	b := bwrapArgs{plan: plan, files: files, made: map[string]bool{}}
	b.add("--unshare-user", "--disable-userns", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
	if !plan.Network {
		b.add("--unshare-net")
	}
	b.add("--cap-drop", "ALL", "--new-session", "--die-with-parent", "--hostname", "rnix")
	root := plan.Policy.Access("/")
	switch root {
	case AccessRead:
		b.add("--ro-bind", "/", "/")
	case AccessWrite:
		b.add("--bind", "/", "/")
	}
	// As root bubblewrap leaves the settings of the machine in /proc/sys writable, which belong to root.
	b.add("--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
	for _, p := range plan.Policy.points() {
		if p.path != "/" && !own(p.path) {
			b.point(p)
		}
	}
	for _, dir := range b.seal {
		b.add("--remount-ro", dir)
	}
	if root == AccessNone {
		b.add("--remount-ro", "/")
	}
	b.add("--chdir", "/", "--")
	mounts := 0
	for i := range plan.Argv {
		if pins(plan.Argv, i) {
			mounts++
		}
	}
	if plan.Pinned && mounts > mostPins {
		return refuse("cannot confine with bubblewrap: %d paths are to be mounted, and %d are possible; name fewer, or a directory that has several", mounts, mostPins)
	}
	if !plan.Pinned {
		plan.Gaps = append(plan.Gaps, "a directory that another agent replaces by a link in the moment in which a command starts is followed: bubblewrap 0.10.0 or newer prevents that")
	}
	plan.commonGaps()
	return nil
}

// pins reports whether an option among the arguments of bubblewrap mounts what is at a path at that path, below the root.
func pins(argv []string, i int) bool {
	return (argv[i] == "--bind" || argv[i] == "--ro-bind") && i+2 < len(argv) && argv[i+1] == argv[i+2] && argv[i+1] != "/"
}

// own says whether bubblewrap itself makes what is at a path.
func own(path string) bool {
	const shm = "/dev/shm"
	return within(path, "/proc") || within(path, "/dev") && (path == shm || !within(path, shm))
}

type bwrapArgs struct {
	plan  *Plan
	files Files
	made  map[string]bool // mount points so far
	seal  []string        // new file systems that become read-only once all mount points in them exist
}

func (b *bwrapArgs) add(args ...string) { b.plan.Argv = append(b.plan.Argv, args...) }

func (b *bwrapArgs) point(p point) {
	kind := b.files.Kind(p.path)
	if p.access < p.above && p.above == AccessWrite {
		b.hold(p, kind)
		return
	}
	switch {
	case kind == Missing || kind == Link: // a link after Resolve is one that changed meanwhile; it grants nothing
	case p.access == AccessWrite:
		b.mount("--bind", p.path)
	case p.access == AccessRead:
		b.mount("--ro-bind", p.path)
	case kind == Directory:
		b.hide(p.path)
	default:
		b.add("--ro-bind", "/dev/null", p.path)
	}
}

// hold takes rights from a path in a directory where the command may write. All directories between become mount points too: one
// that is not could be renamed, and another one put in its place. What is missing is held by an empty directory, and so is what another box holds: it would
// go with that box, and the name be free.
func (b *bwrapArgs) hold(p point, kind Kind) {
	path := p.path
	if vacant(b.files, path) {
		path = firstMissing(b.files, path)
	}
	for _, dir := range ancestors(path) {
		if b.plan.Policy.Access(dir) == AccessWrite && !b.made[dir] && dir != "/" {
			b.mount("--bind", dir)
		}
	}
	if b.made[path] {
		return // another protected path is below the same missing directory
	}
	missing := vacant(b.files, path)
	if missing {
		b.plan.Held = append(b.plan.Held, path)
	}
	switch {
	case p.access == AccessRead || missing:
		b.mount("--ro-bind", path)
	case kind == Directory:
		b.hide(path)
	default:
		b.made[path] = true
		b.add("--ro-bind", "/dev/null", path)
	}
}

func (b *bwrapArgs) mount(option, path string) {
	b.made[path] = true
	b.add(option, path, path)
}

// hide covers a directory by an empty one. Those that every system shares are replaced by one that can be written.
func (b *bwrapArgs) hide(dir string) {
	b.made[dir] = true
	if slices.Contains(private, dir) {
		b.add("--perms", "1777")
	} else {
		b.add("--perms", "0755")
		b.seal = append(b.seal, dir)
	}
	b.add("--size", strconv.Itoa(privateSize), "--tmpfs", dir)
}
