package confine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/internal/harness"
	"rnix/types"
)

// maxLogin is how many bytes a file of a login, or of facts, may have that is copied. Claude Code's facts hold what it knows of each project.
const maxLogin = 64 << 20

// linkTries is how often a file is linked into a home where another keeps turning up.
const linkTries = 10

// errNoFile is why something is no file of a login.
var errNoFile = errors.New("it is no file, or too long for a login")

// login gives a home of its own, below root, the login of a user's home, and the user what a program has refreshed in it. Each file of the login is
// the same in both, by a hard link: a program writes it in place, and one that is refreshed in two places makes the other worthless. Where that
// cannot be, and where a program has put another file in its place, the later one is copied over the earlier. dir is in place of l.Dir below
// the user's home; empty = it is there. wants are the user's facts. Programs in the sandbox may have made anything of what is below root.
func login(root *os.Root, l harness.Login, user, dir string, wants facts) error {
	for _, name := range l.Files {
		name = filepath.Join(l.Dir, name)
		err := straight(root, name)
		if err == nil {
			err = same(root, l, l.At(user, dir, name), name)
		}
		if err != nil {
			return types.Errorf(types.ErrStorage, "Start", l.At(user, dir, name), "the login cannot be given to the agent CLI in the sandbox: %w", err)
		}
	}
	if l.Facts == "" {
		return nil
	}
	err := straight(root, l.Facts)
	if err == nil {
		err = giveFacts(root, l.Keys, wants, l.Facts)
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Start", l.Facts, "what the agent CLI knows of its user cannot be given to it in the sandbox: %w", err)
	}
	return nil
}

// straight makes the directories above a file below root anew which a program has made something else of, and takes back the right to them.
func straight(root *os.Root, own string) error {
	for i, c := range own {
		if c != '/' {
			continue
		}
		dir := own[:i]
		info, err := root.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !info.IsDir():
			return root.Remove(dir)
		case info.Mode().Perm()&0o700 != 0o700:
			if err := root.Chmod(dir, 0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes what is below root, also where a program has taken the right to do that.
func remove(root *os.Root, own string) error {
	err := root.RemoveAll(own)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	takeBack(root, own)
	return root.RemoveAll(own)
}

// takeBack takes back the right to directories below root. It opens nothing else: fs.WalkDir would wait for the other end of a pipe that a program puts in
// the place of one.
func takeBack(root *os.Root, own string) {
	if info, err := root.Lstat(own); err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(own, 0o700) // RemoveAll says what is left
	dir, err := root.OpenFile(own, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	names, _ := dir.Readdirnames(-1) // what could be read
	_ = dir.Close()                  // nothing was written
	for _, name := range names {
		takeBack(root, filepath.Join(own, name))
	}
}

// same makes a file of a login the same in both homes, or, of entries of which a program may refresh only tokens, these. What the user has not is in
// none.
func same(root *os.Root, l harness.Login, users, own string) error {
	tokens := l.Tokens
	info, err := os.Stat(users)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return remove(root, own)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errNoFile
	}
	if users, err = filepath.EvalSymlinks(users); err != nil {
		return err
	}
	if l.Keyless() {
		text, err := readUsers(users)
		if err != nil {
			return err
		}
		if l.Without(filepath.Base(own), text) == nil {
			return remove(root, own)
		}
	}
	has, err := root.Lstat(own)
	switch {
	case err == nil && os.SameFile(has, info) && tokens == nil:
		return nil
	case err == nil && has.Mode().IsRegular() && !os.SameFile(has, info) && has.ModTime().After(info.ModTime()):
		text, err := readOwn(root, own)
		if err == nil && tokens != nil {
			var old []byte
			if old, err = readUsers(users); err == nil {
				text, err = refreshed(old, text, tokens)
			}
		}
		if err == nil && text != nil && json.Valid(text) {
			if err := durable.WriteFile(durable.OS, users, text, durable.Durable); err != nil {
				return err
			}
		}
	}
	if tokens != nil {
		return copied(root, l, users, own)
	}
	for range linkTries { // a program that runs in this home may put another there at any moment
		if err = remove(root, own); err == nil {
			err = root.MkdirAll(filepath.Dir(own), 0o700)
		}
		if err == nil {
			err = link(root, users, own)
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EXDEV) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EMLINK) || errors.Is(err, errors.ErrUnsupported) {
		return copied(root, l, users, own)
	}
	return err
}

// copied makes a file below root a copy of one of the user's, unless it is one.
func copied(root *os.Root, l harness.Login, users, own string) error {
	text, err := readUsers(users)
	if err != nil {
		return err
	}
	if text = l.Without(filepath.Base(own), text); text == nil {
		return remove(root, own)
	}
	has, err1 := root.Lstat(own)
	info, err2 := os.Stat(users)
	if old, err := readOwn(root, own); errors.Join(err, err1, err2) == nil && bytes.Equal(old, text) && !os.SameFile(has, info) {
		return nil // its time says which is the later
	}
	if err := remove(root, own); err != nil {
		return err
	}
	return writeOwn(root, own, text)
}

// refreshed returns a login of the user's with the tokens of a program's, where both have an entry that has some; nil if they are the same.
func refreshed(users, own []byte, tokens []string) ([]byte, error) {
	has, news := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(users, &has), json.Unmarshal(own, &news)); err != nil {
		return nil, err
	}
	changed := false
	for name, text := range has {
		var entry, fresh map[string]any
		if json.Unmarshal(text, &entry) != nil || json.Unmarshal(news[name], &fresh) != nil || entry["type"] != "oauth" || fresh["type"] != "oauth" {
			continue
		}
		for _, key := range tokens {
			switch value := fresh[key].(type) {
			case string, float64:
				if entry[key] != nil && entry[key] != value {
					entry[key], changed = value, true
				}
			}
		}
		var err error
		if has[name], err = json.Marshal(entry); err != nil {
			return nil, err
		}
	}
	if !changed {
		return nil, nil
	}
	return json.MarshalIndent(has, "", "  ")
}

// link makes a hard link of a file below root.
func link(root *os.Root, file, own string) error {
	// What a program has put there meanwhile, such as a pipe, would not be opened before another program opens it.
	dir, err := root.OpenFile(filepath.Dir(own), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer dir.Close() // nothing was written
	return unix.Linkat(unix.AT_FDCWD, file, int(dir.Fd()), filepath.Base(own), 0)
}

// readOwn reads a file below root, if it is one.
func readOwn(root *os.Root, own string) ([]byte, error) {
	return readFile(root.OpenFile(own, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0))
}

// readUsers reads a file of the user's, if it is one. In its place commands may have put a pipe, for which nobody waits.
func readUsers(path string) ([]byte, error) {
	return readFile(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// readFile reads a file that was opened, and closes it.
func readFile(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close() // nothing was written
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxLogin {
		return nil, errors.Join(err, errNoFile)
	}
	return io.ReadAll(io.LimitReader(f, maxLogin))
}

// writeOwn writes a file below root, whole or not at all.
func writeOwn(root *os.Root, own string, text []byte) error {
	part := own + ".part"
	if err := remove(root, part); err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(part, own)
	}
	return err
}

// facts are what a JSON file says.
type facts = map[string]json.RawMessage

// factsTime is for how long a file of facts is read again that is no JSON: the user's program may be writing it.
const factsTime = time.Second

// readFacts returns the user's facts that belong to a login; none if there is no such file.
func readFacts(l harness.Login, user, dir string) (wants facts, err error) {
	if l.Facts == "" {
		return nil, nil
	}
	path := filepath.Join(user, l.Facts)
	if dir != "" {
		path = filepath.Join(dir, filepath.Base(l.Facts))
	}
	for end := time.Now().Add(factsTime); ; <-time.After(factsTime / 50) {
		text, err := readUsers(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err == nil:
			if err = json.Unmarshal(text, &wants); err == nil {
				l.WithoutFacts(wants)
				return wants, nil
			}
			if time.Now().Before(end) {
				continue
			}
		}
		return nil, types.Errorf(types.ErrStorage, "Start", path, "what the program knows of its user cannot be given to it in the sandbox: %w", err)
	}
}

// giveFacts gives a JSON file below root the keys that the user's facts have. What else is in it stays.
func giveFacts(root *os.Root, keys []string, wants facts, own string) error {
	has := facts{}
	was, err := readOwn(root, own)
	if err != nil || json.Unmarshal(was, &has) != nil || has == nil { // what cannot be read is written anew
		if err := remove(root, own); err != nil {
			return err
		}
		has = facts{}
	}
	changed := err != nil || len(has) == 0
	for _, key := range keys {
		value, ok := wants[key]
		switch old, had := has[key]; {
		case ok && (!had || !bytes.Equal(compact(old), compact(value))):
			has[key], changed = value, true
		case !ok && had:
			delete(has, key)
			changed = true
		}
	}
	if !changed { // another program may be writing it
		return nil
	}
	text, err := json.Marshal(has)
	if err != nil {
		return err
	}
	return writeOwn(root, own, text)
}

// compact returns JSON without what stands between its parts.
func compact(text []byte) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, text) // it was read as JSON
	return b.Bytes()
}

// shown lets a home of its own, below root, show what lies elsewhere: by their names in it, the files and directories that it leads to. What has been
// put in their place stays; what is not there is left out.
func shown(root *os.Root, names map[string]string) error {
	for name, to := range names {
		if _, err := os.Lstat(to); err != nil {
			continue
		}
		err := straight(root, name)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(name), 0o700)
		}
		if old, e2 := root.Readlink(name); err == nil && e2 == nil && old != to { // it led there once
			err = root.Remove(name)
		}
		if err == nil {
			err = root.Symlink(to, name)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return types.Errorf(types.ErrStorage, "Start", name, "the home of the agent CLI in the sandbox cannot be made: %w", err)
		}
	}
	return nil
}
