package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rnix/types"
)

func places(t *testing.T) Places {
	t.Helper()
	home := t.TempDir()
	return Places{ProjectDir: t.TempDir(), Home: home, UserConfigDir: filepath.Join(home, ".config", "rnix")}
}

func skillText(name, body string) string {
	return "---\nname: " + name + "\ndescription: about " + name + "\n---\n" + body
}

func TestTheFirstPlaceWinsAndSaysWhatItHides(t *testing.T) {
	p := places(t)
	p.TrustProject = true
	order := []struct{ dir, scope string }{
		{filepath.Join(p.ProjectDir, ".rnix/skills"), ScopeProject},
		{filepath.Join(p.ProjectDir, ".agents/skills"), ScopeProject},
		{filepath.Join(p.ProjectDir, ".claude/skills"), ScopeProject},
		{filepath.Join(p.UserConfigDir, "skills"), ScopeUser},
		{filepath.Join(p.Home, ".agents/skills"), ScopeUser},
		{filepath.Join(p.Home, ".config/agents/skills"), ScopeUser},
	}
	for i := len(order) - 1; i >= 0; i-- {
		write(t, filepath.Join(order[i].dir, "using-rnix"), SkillFile, skillText("using-rnix", order[i].dir))
		c := Discover(p)
		s, err := c.Skill("using-rnix")
		if err != nil || s.Body != order[i].dir || s.Scope != order[i].scope || s.Dir != filepath.Join(order[i].dir, "using-rnix") {
			t.Errorf("%s: %+v, %v", order[i].dir, s, err)
		}
		if got, want := strings.Count(c.Problems().Error(), "hidden: the skill using-rnix"), len(order)-i; got != want || len(c.Problems().Errors()) != 0 {
			t.Errorf("%d hidden, want %d: %v", got, want, c.Problems())
		}
	}
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/assistant"), ManifestFile, "description: of the project\n")
	a, err := Discover(p).Load("", LoadOptions{})
	if err != nil || a.Description != "of the project" || a.Source != filepath.Join(p.ProjectDir, ".rnix/agents/assistant") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestABrokenAgentIsNotReplacedByTheOneBehindIt(t *testing.T) {
	p := places(t)
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/reviewer"), ManifestFile, "devises: []\n")
	_, err := Discover(p).Load("reviewer", LoadOptions{})
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), `agent.yaml:1:1: devises: unknown key; did you mean "devices"?`) {
		t.Errorf("err %v", err)
	}
}

func TestUnknownNamesGetASuggestionAndTheList(t *testing.T) {
	p := places(t)
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/mine"), ManifestFile, "skills: [write-test]\n")
	c := Discover(p)
	for name, want := range map[string]string{"assistent": "did you mean assistant?; there is assistant, explorer, mine, reviewer", "mine": "did you mean write-tests?", "zzz": "there is assistant"} {
		if _, err := c.Load(name, LoadOptions{}); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"../x", "a/b", `a\b`, "a..b", ".hidden", strings.Repeat("a", 65)} {
		if _, err := c.Load(name, LoadOptions{}); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTwoLoadsShareNothing(t *testing.T) {
	p := places(t)
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/mine"), ManifestFile, "skills: [write-tests]\ndevices: [/dev/fs]\nmax_steps: 3\n")
	c := Discover(p)
	a, _ := c.Load("mine", LoadOptions{})
	a.Skills, a.Devices[0], *a.MaxSteps, a.Loaded[0].Body = append(a.Skills, "x"), "/", 9, ""
	b, err := c.Load("mine", LoadOptions{})
	if err != nil || len(b.Skills) != 1 || b.Devices[0] != "/dev/fs" || *b.MaxSteps != 3 || b.Loaded[0].Body == "" {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestLinksMayNotLeadOutOfTheProject(t *testing.T) {
	p := places(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "evil"), SkillFile, skillText("evil", "x"))
	write(t, outside, "key", "k3ym4terial")
	write(t, filepath.Join(p.ProjectDir, "lib/good"), SkillFile, skillText("good", "x"))
	write(t, filepath.Join(p.ProjectDir, ".rnix/skills/leak"), "x", "")
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/leak"), ManifestFile, "description: x\n")
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/wait"), "x", "")
	link := func(target, at string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(p.ProjectDir, at)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join(outside, "evil"), ".rnix/skills/evil")
	link("../../lib/good", ".rnix/skills/good")
	link(filepath.Join(outside, "key"), ".rnix/skills/leak/SKILL.md")
	link(filepath.Join(outside, "key"), ".rnix/agents/leak/instructions.md")
	link(filepath.Join(outside, "key"), "AGENTS.md")
	if err := syscall.Mkfifo(filepath.Join(p.ProjectDir, ".rnix/agents/wait/agent.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Discover(p)
	names := []string{}
	for _, s := range c.Skills() {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"good", "using-rnix", "write-tests"}) {
		t.Errorf("skills %v", names)
	}
	for _, name := range []string{"leak", "wait"} {
		if _, err := c.Load(name, LoadOptions{}); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := c.Load("", LoadOptions{WorkDir: p.ProjectDir, ProjectDir: p.ProjectDir})
	if err != nil || a.Doc.Text != "" || a.Doc.Problem == "" || strings.Contains(a.SystemPrompt(), "k3ym4terial") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestTheNearestDocumentCountsUpToTheProject(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "project")
	write(t, top, DocumentFile, "above")
	write(t, root, ".git/HEAD", "x")
	write(t, root, "a/b/c/x", "")
	write(t, root, DocumentFile, "of the root\n")
	write(t, root, "a/b/AGENTS.md", strings.Repeat("ü", MaxDocument))
	for dir, want := range map[string]string{".": "of the root", "a": "of the root", "a/b/c": "üü", "a/b": "üü"} {
		at := filepath.Join(root, dir)
		got, ok := ProjectRoot(at, top)
		if got != root || !ok {
			t.Fatalf("root of %s is %s", dir, got)
		}
		doc, err := FindDocument(at, got)
		if err != nil || !strings.HasPrefix(doc.Text, want) || len(doc.Text) > MaxDocument+100 {
			t.Errorf("%s: %.40q, %v", dir, doc.Text, err)
		}
	}
	if got, ok := ProjectRoot(top, ""); ok && strings.HasPrefix(got, top) {
		t.Errorf("a plain directory is a project: %s", got)
	}
	if doc, err := FindDocument(filepath.Join(root, "a"), filepath.Join(root, "a/b")); err != nil || doc != (Document{}) {
		t.Errorf("outside of the root: %+v, %v", doc, err)
	}
}

func TestInstructionsForOtherAgentsCountWhereThereAreNone(t *testing.T) {
	root := t.TempDir()
	write(t, root, "CLAUDE.md", "for Claude")
	write(t, root, ".github/copilot-instructions.md", "for Copilot")
	write(t, root, "a/.cursorrules", "for Cursor")
	write(t, root, "b/AGENTS.md", "for all")
	write(t, root, "b/CLAUDE.md", "for Claude")
	write(t, root, "c/AGENTS.md", " \n")
	write(t, root, "c/.claude/CLAUDE.md", "below")
	for dir, want := range map[string]Document{
		".": {Path: "CLAUDE.md", Text: "for Claude"}, "a": {Path: "a/.cursorrules", Text: "for Cursor"},
		"b": {Path: "b/AGENTS.md", Text: "for all"}, "c": {Path: "c/.claude/CLAUDE.md", Text: "below"},
	} {
		if doc, err := FindDocument(filepath.Join(root, dir), root); err != nil || doc != want {
			t.Errorf("%s: %+v, %v", dir, doc, err)
		}
	}
}

func TestTheHomeDirectoryIsNoProject(t *testing.T) {
	home := t.TempDir()
	write(t, home, ".rnix/data/x", "")
	write(t, home, "work/x", "")
	if root, ok := ProjectRoot(filepath.Join(home, "work"), home); ok || root != filepath.Join(home, "work") {
		t.Errorf("root %s, %v", root, ok)
	}
}

func TestTheBuiltInAgentsAndSkillsAreClean(t *testing.T) {
	c := Discover(Places{})
	if ps := c.Problems(); len(ps) != 0 {
		t.Fatal(ps)
	}
	for _, e := range c.Agents() {
		a, err := c.Load(e.Name, LoadOptions{})
		if err != nil || a.Source != ScopeBuiltIn || a.Description == "" {
			t.Errorf("%s: %v", e.Name, err)
			continue
		}
		again, err := c.Load(e.Name, LoadOptions{})
		if n := len(a.SystemPrompt()); err != nil || n < 500 || n > 8000 || again.SystemPrompt() != a.SystemPrompt() {
			t.Errorf("%s has a prompt of %d bytes, or another one each time", e.Name, n)
		}
		if readOnly := a.Devices != nil; readOnly != (e.Name != DefaultAgent) || slices.Contains(a.Devices, "/dev/shell") || slices.Contains(a.Devices, "/dev/workspace") {
			t.Errorf("%s may use %v", e.Name, a.Devices)
		}
	}
	if len(c.Agents()) != 3 || len(c.Skills()) != 2 {
		t.Errorf("%d agents, %d skills", len(c.Agents()), len(c.Skills()))
	}
}

func TestAPromptHoldsEverythingOnce(t *testing.T) {
	p := places(t)
	write(t, p.ProjectDir, DocumentFile, "use tabs")
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/mine"), ManifestFile, "skills: [help]\nlanguage: English\n")
	write(t, filepath.Join(p.ProjectDir, ".rnix/agents/mine"), InstructionsFile, "be brief\n")
	write(t, filepath.Join(p.ProjectDir, ".rnix/skills/help"), SkillFile, skillText("help", "how to help"))
	a, err := Discover(p).Load("mine", LoadOptions{WorkDir: p.ProjectDir})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"be brief", "# Skill: help", "how to help", "use tabs", "(AGENTS.md)", "English"} {
		if strings.Count(a.SystemPrompt(), part) != 1 {
			t.Errorf("%q stands %d times in\n%s", part, strings.Count(a.SystemPrompt(), part), a.SystemPrompt())
		}
	}
}

// BenchmarkDiscoverAndLoad is what a spawn pays for the default agent.
func BenchmarkDiscoverAndLoad(b *testing.B) {
	home, project := b.TempDir(), b.TempDir()
	p := Places{ProjectDir: project, Home: home, UserConfigDir: filepath.Join(home, ".config", "rnix")}
	for b.Loop() {
		if _, err := Discover(p).Load("", LoadOptions{WorkDir: project, ProjectDir: project}); err != nil {
			b.Fatal(err)
		}
	}
}
