package config

import (
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
	src, err := yamlfile.ReadFile(file, yamlfile.MaxBytes+1)
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
	return src, file, readable(file, err, ps)
}

func readable(file string, err error, ps *Problems) bool {
	if err != nil && !yamlfile.Missing(err) {
		*ps = append(*ps, agent.Problem{File: file, Message: yamlfile.Cause(err).Error() + "; it is not used"})
	}
	return err == nil
}
