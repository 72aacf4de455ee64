package mcpserve

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// maxPrivate is the largest file with a secret in bytes.
const maxPrivate = 64 << 10

// readPrivate reads a file that nobody but this user can read. One that others can, that is a symbolic link or
// somebody else's is refused with the code PERMISSION, and with what to do about it.
func readPrivate(op, path, mend string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, unix.ELOOP):
		return nil, types.Errorf(types.ErrPermission, op, path, "is a symbolic link; name the file itself")
	case errors.Is(err, fs.ErrNotExist):
		return nil, types.Errorf(types.ErrNotFound, op, path, "there is no such file; %s", mend)
	case errors.Is(err, fs.ErrPermission):
		return nil, types.Errorf(types.ErrPermission, op, path, "%w", err)
	case err != nil:
		return nil, types.Errorf(types.ErrInvalid, op, path, "%w", err)
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, types.Errorf(types.ErrInternal, op, path, "%w", err)
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, types.Errorf(types.ErrInvalid, op, path, "is not a file")
	case int(st.Uid) != os.Geteuid():
		return nil, types.Errorf(types.ErrPermission, op, path, "is owned by uid %d, not by uid %d who runs this; %s", st.Uid, os.Geteuid(), mend)
	case st.Mode&0o077 != 0:
		return nil, types.Errorf(types.ErrPermission, op, path, "others can read it (mode %04o), so it is no secret; %s", st.Mode&0o777, mend)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxPrivate+1))
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, op, path, "%w", err)
	}
	if len(data) > maxPrivate {
		return nil, types.Errorf(types.ErrInvalid, op, path, "has more than %d bytes", maxPrivate)
	}
	return data, nil
}

// TokenFile returns the token in a file that only this user can read. If there is no such file it makes one, with a
// new token.
func TokenFile(path string) (string, error) {
	const op = "Token"
	const mend = "remove it, and a new one is made"
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		data, err := readPrivate(op, path, mend)
		if err != nil {
			return "", err
		}
		token := strings.TrimSpace(string(data))
		if err := CheckToken(token); err != nil {
			return "", types.Errorf(types.ErrInvalid, op, path, "%w; %s", err, mend)
		}
		return token, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", types.Errorf(types.ErrNotFound, op, path, "its directory does not exist")
	case errors.Is(err, fs.ErrPermission):
		return "", types.Errorf(types.ErrPermission, op, path, "%w", err)
	case err != nil:
		return "", types.Errorf(types.ErrInvalid, op, path, "%w", err)
	}
	token := NewToken()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // half a token is none
		return "", types.Errorf(types.ErrStorage, op, path, "%w", err)
	}
	return token, nil
}
