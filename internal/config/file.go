package config

import (
	"errors"
	"os"
	"path/filepath"

	"rnix/agent"
	"rnix/internal/yamlfile"
)

// userFile reads a file of the user's directory. ok is false if there is none, or if it cannot be
// read, which is reported.
func (s Sources) userFile(name string, ps *Problems) (src []byte, file string, ok bool) {
	if s.UserDir == "" {
		return nil, "", false
	}
	file = filepath.Join(s.UserDir, name)
	src, err := yamlfile.ReadFixed(file, yamlfile.MaxBytes+1)
	if yamlfile.Missing(err) {
		err = gone(err, os.Lstat, file, s.UserDir)
	}
	return src, file, readable(file, err, ps)
}

// projectFile reads a file of the project's .rnix. It is not read through a link that leads out of
// the project.
func (s Sources) projectFile(name string, ps *Problems) (src []byte, file string, ok bool) {
	if s.ProjectDir == "" {
		return nil, "", false
	}
	file = filepath.Join(s.ProjectDir, ".rnix", name)
	root, err := os.OpenRoot(s.ProjectDir)
	if err != nil {
		return nil, file, readable(s.ProjectDir, err, ps)
	}
	defer root.Close()
	src, err = yamlfile.ReadFS(yamlfile.Inside(root), ".rnix/"+name, yamlfile.MaxBytes+1)
	if yamlfile.Missing(err) {
		err = gone(err, root.Lstat, ".rnix/"+name, ".rnix")
	}
	return src, file, readable(file, err, ps)
}

// gone returns err, which says that there is no file, or what stands in its place: a link that leads to nothing, or
// something that is no directory where the file's should be.
func gone(err error, lstat func(string) (os.FileInfo, error), file, dir string) error {
	if _, lerr := lstat(file); lerr == nil {
		return errors.New("the symbolic link leads to nothing; mend or remove it")
	}
	switch st, lerr := lstat(dir); {
	case lerr != nil:
		return err
	case st.Mode()&os.ModeSymlink != 0:
		if _, serr := lstat(dir + "/."); serr != nil {
			return errors.New("the symbolic link " + dir + " leads to no directory; mend or remove it")
		}
	case st.Mode().IsRegular():
		return errors.New(dir + " is not a directory; move it away")
	}
	return err
}

func readable(file string, err error, ps *Problems) bool {
	if _, is := errors.AsType[yamlfile.Misnamed](err); is {
		*ps = append(*ps, agent.Problem{File: file, Message: err.Error()})
	} else if err != nil && !yamlfile.Missing(err) {
		*ps = append(*ps, agent.Problem{File: file, Message: yamlfile.Cause(err).Error() + "; it is not used, so make it a file that you can read, or remove it"})
	}
	return err == nil
}
