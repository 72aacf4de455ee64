package agent

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"rnix/internal/pattern"
	"rnix/internal/yamlfile"
)

// SkillFile is the name of a skill's file.
const SkillFile = "SKILL.md"

// The caps of a skill.
const (
	MaxSkillBody  = 64 << 10 // bytes of the body; a longer one is cut, with a marker
	maxSkillFront = 64 << 10 // bytes of the front matter
)

var skillName = pattern.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// LoadSkill reads the SKILL.md of a directory. It is lenient, because skills are written for many
// programs: the skill can be used unless Problems.Errors of the result is not empty; the warnings
// say what was made of the rest.
func LoadSkill(dir string) (Skill, Problems) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return Skill{}, Problems{{File: filepath.Join(abs, SkillFile), Message: "skipped: " + yamlfile.Cause(err).Error()}}
	}
	defer root.Close()
	return readSkill(yamlfile.Inside(root), ".", abs)
}

// readSkill reads the skill in a directory of fsys, whose path for people is dir.
func readSkill(fsys fs.FS, at, dir string) (Skill, Problems) {
	file := filepath.Join(dir, SkillFile)
	src, err := yamlfile.ReadFS(fsys, path.Join(at, SkillFile), maxSkillFront+MaxSkillBody+2)
	if err != nil {
		return Skill{}, Problems{{File: file, Message: "skipped: " + yamlfile.Cause(err).Error()}}
	}
	s, ps := parseSkill(src, file, filepath.Base(dir))
	s.Dir = dir
	return s, ps
}

// ParseSkill reads the text of a SKILL.md; dirName is the name of its directory, "" if not known.
// As with LoadSkill, the skill can be used unless there are Problems.Errors.
func ParseSkill(src []byte, dirName string) (Skill, Problems) {
	return parseSkill(src, SkillFile, dirName)
}

// front is the front matter as it stands in the file.
type front struct {
	Name          string            `yaml:"name"`
	Description   string            `yaml:"description"`
	License       string            `yaml:"license"`
	Compatibility string            `yaml:"compatibility"`
	AllowedTools  yamlfile.Words    `yaml:"allowed-tools"` // a text in the format, but many write a list
	Metadata      map[string]string `yaml:"metadata"`
}

func parseSkill(src []byte, file, dirName string) (Skill, Problems) {
	head, body, problem := splitFront(src)
	if problem != "" {
		return Skill{}, Problems{{File: file, Line: 1, Column: 1, Message: "skipped: " + problem}}
	}
	var f front
	d := yamlfile.Decode(head, &f, yamlfile.Options{
		File: file, FirstLine: 1, Unknown: yamlfile.Ignore, MaxBytes: maxSkillFront, AllowEmpty: true,
	})
	if !d.Has("") && len(d.Problems()) > 0 {
		return Skill{}, d.Problems()
	}
	d.Forgive()
	s := Skill{
		Name: f.Name, Description: strings.TrimSpace(f.Description), License: f.License, Compatibility: f.Compatibility,
		AllowedTools: strings.Join(f.AllowedTools, " "), Metadata: f.Metadata, Body: cut(bytes.TrimSpace(body), MaxSkillBody),
	}
	s.check(d, dirName)
	return s, d.Problems()
}

// check reports what the format does not allow. Only what makes the skill useless or dangerous is an
// error.
func (s *Skill) check(d *yamlfile.Doc, dirName string) {
	switch {
	case s.Name == "":
		d.Problemf("name", "skipped: the name is missing")
	case !ValidName(s.Name):
		d.Problemf("name", "skipped: %q cannot be a name; use a-z, 0-9 and single '-', at most 64", s.Name)
	case !skillName().MatchString(s.Name):
		d.Warnf("name", "%q is used, but the format wants only a-z, 0-9 and single '-'", s.Name)
	case dirName != "" && s.Name != dirName:
		d.Warnf("name", "%q is used, but the directory is called %q", s.Name, dirName)
	}
	if s.Description == "" {
		d.Problemf("description", "skipped: the description is missing; it says when to use the skill")
	}
	s.Description = shorten(d, "description", s.Description, 1024)
	s.Compatibility = shorten(d, "compatibility", s.Compatibility, 500)
}

func shorten(d *yamlfile.Doc, key, s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	d.Warnf(key, "longer than %d characters; the rest is not used", limit)
	return string(r[:limit])
}

// splitFront divides a file at its front matter, which stands between two lines of "---" at the very
// top. problem is empty if there is one.
func splitFront(src []byte) (head, body []byte, problem string) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	line, rest, _ := bytes.Cut(src, []byte("\n"))
	if string(bytes.TrimRight(line, " \t\r")) != "---" {
		return nil, nil, "the file must begin with ---, its name and description, and a second ---"
	}
	for at := 0; at < len(rest); {
		line, _, more := bytes.Cut(rest[at:], []byte("\n"))
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			return rest[:at], rest[min(at+len(line)+1, len(rest)):], ""
		}
		if !more {
			break
		}
		at += len(line) + 1
	}
	return nil, nil, "the second --- that ends name and description is missing"
}
