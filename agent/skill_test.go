package agent

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestASkillIsReadLeniently(t *testing.T) {
	const ok = "---\nname: my-skill\ndescription: Does it.\n---\nThe body.\n"
	for _, c := range []struct {
		name, src, dir string
		errors         int
		warning        string
	}{
		{"right", ok, "my-skill", 0, ""},
		{"windows", strings.ReplaceAll("\ufeff"+ok, "\n", "\r\n"), "my-skill", 0, ""},
		{"other directory", ok, "yours", 0, `skill.md:2:7: name: "my-skill" is used, but the directory is called "yours"`},
		{"foreign keys", "---\nname: a\ndescription: b\nmodel: x\nhooks: {a: 1}\n---\n", "a", 0, ""},
		{"nearly a key", "---\nname: a\ndescription: b\nlicence: MIT\n---\n", "a", 0, `skill.md:4:1: licence: unknown key; did you mean "license"?`},
		{"numbers", "---\nname: a\ndescription: b\nmetadata: {version: 1.0}\n---\n", "a", 0, ""},
		{"nested metadata", "---\nname: a\ndescription: b\nmetadata: {x: {y: 1}, z: 2}\n---\n", "a", 0, "metadata.x: this is a map, but must be a text"},
		{"tools as a list", "---\nname: a\ndescription: b\nallowed-tools: [Read, Grep]\n---\n", "a", 0, ""},
		{"upper case", "---\nname: My_Skill\ndescription: b\n---\n", "My_Skill", 0, "the format wants only"},
		{"two dashes", "---\nname: a--b\ndescription: b\n---\n", "a--b", 0, "the format wants only"},
		{"long description", "---\nname: a\ndescription: " + strings.Repeat("ä", 1030) + "\n---\n", "a", 0, "longer than 1024"},
		{"long compatibility", "---\nname: a\ndescription: b\ncompatibility: " + strings.Repeat("x", 501) + "\n---\n", "a", 0, "longer than 500"},
		{"no front matter", "# Title\n", "a", 1, ""},
		{"no end", "---\nname: a\n", "a", 1, ""},
		{"empty front matter", "---\n---\nbody", "a", 2, ""},
		{"no description", "---\nname: a\n---\n", "a", 1, ""},
		{"no name", "---\ndescription: a\n---\n", "a", 1, ""},
		{"path as name", "---\nname: ../../x\ndescription: a\n---\n", "a", 1, ""},
		{"colon", "---\nname: a\ndescription: Use when: always\n---\n", "a", 1, ""},
		{"a list", "---\n- a\n---\n", "a", 2, ""},
		{"empty", "", "a", 1, ""},
	} {
		s, ps := parseSkill([]byte(c.src), "skill.md", c.dir)
		if got := len(ps.Errors()); got != c.errors {
			t.Errorf("%s: %d errors, want %d: %v", c.name, got, c.errors, ps)
		}
		if c.warning == "" && c.errors == 0 && len(ps) > 0 || !strings.Contains(ps.Error(), c.warning) {
			t.Errorf("%s: problems %v, want %q", c.name, ps, c.warning)
		}
		if c.errors == 0 && (s.Name == "" || s.Description == "") {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	s, _ := ParseSkill([]byte("---\nname: a\ndescription: b\nallowed-tools: [Read, Grep]\nmetadata: {version: 1.0}\n---\n body \n"), "a")
	if s.AllowedTools != "Read Grep" || s.Metadata["version"] != "1.0" || s.Body != "body" {
		t.Errorf("%+v", s)
	}
}

func TestALongBodyIsCutOnACharactersEdgeAndSaysSo(t *testing.T) {
	src := "---\nname: a\ndescription: b\n---\n" + strings.Repeat("€", MaxSkillBody/3+10)
	s, ps := ParseSkill([]byte(src), "a")
	if len(ps) != 0 || !utf8.ValidString(s.Body) || strings.Contains(s.Body, "\ufffd") || !strings.HasSuffix(s.Body, "[cut here: the file is longer than 64 KiB]") || len(s.Body) > MaxSkillBody+100 {
		t.Errorf("%d bytes, %v", len(s.Body), ps)
	}
}

func TestLoadSkillReadsADirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "good/SKILL.md", skillText("good", "text"))
	if s, ps := LoadSkill(dir + "/good"); len(ps) != 0 || s.Name != "good" || s.Dir != dir+"/good" || s.Body != "text" {
		t.Errorf("%+v %v", s, ps)
	}
	for _, name := range []string{"none", "."} {
		if _, ps := LoadSkill(dir + "/" + name); len(ps.Errors()) != 1 || !strings.Contains(ps.Error(), "skipped: no such file") {
			t.Errorf("%s: %v", name, ps)
		}
	}
}

func FuzzParseSkill(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b\nallowed-tools: A B\nmetadata: {a: b}\n---\nbody"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, ps := ParseSkill(src, "a")
		if len(ps.Errors()) == 0 && (!ValidName(s.Name) || s.Description == "" || !utf8.ValidString(s.Body) || len(s.Body) > 2*MaxSkillBody+maxSkillFront*3) {
			t.Fatalf("accepted %+v", s)
		}
	})
}
