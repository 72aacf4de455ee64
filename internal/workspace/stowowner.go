package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mostAttributes is how many bytes of extended attributes of a workspace are kept with the note on it.
const mostAttributes = 16 << 20

// owner is whose a file is. Part of the on-disk format.
type owner struct {
	User  int `json:"u"`
	Group int `json:"g"`
}

// owned notes of a file what no rescue says of it: whose it is, if it is not ours, and its extended attributes. CONFLICT if it could not get them back.
func (n *stowed) owned(path, rel string, info fs.FileInfo) error {
	user, group, known := ownerOf(info)
	if known && (user != os.Geteuid() || group != os.Getegid()) {
		if user != os.Geteuid() && os.Geteuid() != 0 {
			return conflict(n.Desk.Dir, "%q belongs to another user (%d), to whom it could not be given back", rel, user)
		}
		n.Owners[rel] = owner{user, group}
	}
	has, err := attributesOf(path)
	if err != nil {
		return conflict(n.Desk.Dir, "the extended attributes of %q cannot be read: %w", rel, err)
	}
	for name, value := range has {
		if n.attributes += len(name) + len(value); n.attributes > mostAttributes {
			return conflict(n.Desk.Dir, "its files have more than %d bytes of extended attributes", mostAttributes)
		}
	}
	if len(has) > 0 {
		n.Attributes[rel] = has
	}
	return nil
}

// giveOwners gives the files of a workspace back to whose they were. What the system does not let us give is ours, and said.
func (n *stowed) giveOwners() error {
	var kept []string
	for _, rel := range slices.Sorted(maps.Keys(n.Owners)) {
		o, path := n.Owners[rel], filepath.Join(n.Desk.Dir, rel)
		err := os.Lchown(path, o.User, o.Group)
		switch {
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL): // the program has other rights, or knows no such user here
			kept = append(kept, fmt.Sprintf("%q (%d:%d)", rel, o.User, o.Group))
		case err != nil:
			return fileError("Unarchive", path, err)
		}
	}
	if len(kept) > 0 {
		n.lacks = "files that belonged to other users or groups could not be given back to them, and are yours: " + some(kept)
	}
	return nil
}

// giveAttributes gives the files of a workspace their extended attributes back.
func (n *stowed) giveAttributes() error {
	for rel, has := range n.Attributes {
		path := filepath.Join(n.Desk.Dir, rel)
		for name, value := range has {
			if err := setAttribute(path, name, value); err != nil {
				return fileError("Unarchive", path, err)
			}
		}
	}
	return nil
}

// setAttribute sets an extended attribute, also of a file that its user may not write.
func setAttribute(path, name string, value []byte) error {
	err := unix.Lsetxattr(path, name, value, 0)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	info, serr := os.Lstat(path)
	if serr != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	mode := info.Mode() & modeBits
	if err := os.Chmod(path, mode|0o200); err != nil {
		return err
	}
	return errors.Join(unix.Lsetxattr(path, name, value, 0), os.Chmod(path, mode))
}

// attributesOf returns the extended attributes of a file that are somebody's: others the system gives to each file.
func attributesOf(path string) (map[string][]byte, error) {
	list, err := attribute(func(to []byte) (int, error) { return unix.Llistxattr(path, to) })
	if errors.Is(err, unix.ENOTSUP) || len(list) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		if !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") && name != "security.capability" {
			continue
		}
		value, err := attribute(func(to []byte) (int, error) { return unix.Lgetxattr(path, name, to) })
		if errors.Is(err, unix.ENOTSUP) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// attribute reads what the system gives in a buffer that is large enough.
func attribute(read func(to []byte) (int, error)) ([]byte, error) {
	for {
		size, err := read(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		to := make([]byte, size)
		size, err = read(to)
		if errors.Is(err, unix.ERANGE) {
			continue // it has grown
		}
		return to[:max(size, 0)], err
	}
}
