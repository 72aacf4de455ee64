package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// Place is where a command runs. Its paths are absolute; those that are empty do not exist.
type Place struct {
	Work    string   // the work directory: read and write
	Home    string   // the user's home, of which only tools and settings of git can be read
	Temp    string   // a directory of the command alone, for TMPDIR: read and write
	Private []string // what no command may see: data directory, runtime directory, configuration with keys
	Tools   []string // toolchains and other trees to read, even if a directory above is hidden
	Cache   string   // a directory for the caches of tools, which is shared with nothing outside: read and write
	Git     Git
	// ReadOnly says that the work directory is read as everything else is, and not written.
	ReadOnly bool
}

// Git is where the repository of a work directory lies. FindGit finds it.
type Git struct {
	Top    string // the directory at the top of this work tree
	Dir    string // the directory of this work tree, such as repo/.git or repo/.git/worktrees/x; empty without a repository
	Common string // the repository that a linked work tree belongs to; else as Dir
}

// Linked says whether the work directory is a linked work tree ("git worktree add").
func (g Git) Linked() bool { return g.Dir != g.Common }

// secrets are the places below a home that hold credentials or say what a login starts with.
var secrets = strings.Fields(`.ssh .gnupg .aws .azure .kube .docker .config/gh .config/gcloud .config/hub .config/op .config/rclone
	.config/containers .config/pip .config/git/credentials .config/systemd .config/autostart .config/google-chrome .config/chromium
	.netrc .git-credentials .pgpass .my.cnf .npmrc .pypirc .yarnrc .yarnrc.yml .cargo/credentials .cargo/credentials.toml .gem/credentials
	.m2/settings.xml .gradle/gradle.properties .terraform.d .vault-token .boto .s3cfg .mozilla .thunderbird .password-store
	.local/share/keyrings .local/share/kwalletd .claude .claude.json .codex .gemini .cursor .config/opencode .local/share/opencode
	.bash_history .zsh_history .python_history .node_repl_history .psql_history .mysql_history .lesshst .viminfo`)

// homeTools are the places below a home where tools are installed that people use daily, and what git asks for a name. All else there is
// hidden: what a person keeps in a home is not known to us.
var homeTools = strings.Fields(`.asdf .bun .cargo .config/git .deno .dotnet .fnm .gitconfig .gitignore .gitignore_global .jenv .local/bin .local/lib
	.local/opt .local/share/fnm .local/share/mise .local/share/pnpm .local/share/uv .mise .npm-global .nvm .opam .pyenv .rbenv .rustup .rvm
	.sdkman .stack .swiftly .tool-versions .volta bin go node_modules miniconda3 anaconda3`)

// startFiles are the files in a work directory that other programs act on when they start there. They are protected also
// where they do not exist yet.
var startFiles = strings.Fields(`.rnix .claude .mcp.json .vscode .idea .cursor .codex .gemini .opencode .envrc`)

// loginFiles are the files in a home that a login, a shell or git acts on. They matter if the work directory contains the home.
var loginFiles = strings.Fields(`.bashrc .bash_profile .bash_login .bash_logout .profile .zshrc .zshenv .zprofile .zlogin .zlogout
	.inputrc .gitconfig .config/git .config/fish .local/bin`)

// gitFiles are the files of a repository that make git run something, or look elsewhere for files that do.
var gitFiles = strings.Fields(`hooks config config.worktree info/attributes modules commondir`)

// worktreeFiles are those of a linked work tree's directory in its repository.
var worktreeFiles = strings.Fields(`commondir gitdir config.worktree`)

// gitWritable is what a linked work tree may write of its repository, besides its own directory: enough for commit, branch and stash.
var gitWritable = strings.Fields(`objects refs logs`)

// IsSecret reports whether a path lies in one of the places below a home that hold credentials, or holds one.
func IsSecret(home, path string) bool {
	return slices.ContainsFunc(below(home, secrets), func(secret string) bool { return within(path, secret) || within(secret, path) })
}

// StartFiles returns the names of the files and directories in a work directory that other programs act on when they start there.
// The caller may change the slice.
func StartFiles() []string { return slices.Clone(startFiles) }

// GitFiles returns the names, below a repository's directory, of the files and directories by which git runs something or looks
// elsewhere for it. The caller may change the slice.
func GitFiles() []string { return slices.Clone(gitFiles) }

// private are directories that commands do not share with the host. Under bubblewrap each command has its own, empty ones.
var private = []string{"/dev/shm", "/run", "/tmp", "/var/tmp"}

// devices are the devices of every command.
var devices = strings.Fields(`/dev/full /dev/null /dev/random /dev/tty /dev/urandom /dev/zero`)

// spools are where jobs wait that a service of the host starts.
var spools = strings.Fields(`/var/spool/cron /var/spool/at /var/spool/atjobs`)

// Standard returns the policy of commands at a place, canonical: they read everything but the home, other programs' temporary files
// and what is private, write the work directory, and have no network.
func Standard(place Place) Policy {
	p := Policy{
		Version: Version, Level: LevelAuto, Net: NetNone, Read: []string{"/"}, Write: slices.Clone(devices),
		Hide: slices.Concat([]string{"/dev"}, private, spools), Limits: Limits{Processes: 4096, OpenFiles: 65536},
	}
	given := func(paths ...string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(s string) bool { return s == "" })
	}
	if h := place.Home; h != "" && h != "/" && (place.ReadOnly || !within(h, place.Work)) {
		p.Hide, p.Read = append(p.Hide, h), append(p.Read, below(h, homeTools)...)
	}
	p.Hide = append(p.Hide, below(place.Home, secrets)...)
	p.Hide = append(p.Hide, given(place.Private...)...)
	p.Read = append(p.Read, given(place.Tools...)...)
	p.Write = append(p.Write, given(place.Cache, place.Temp)...)
	p.Protect = append(p.Protect, below(place.Home, loginFiles)...)
	if place.ReadOnly {
		return p.Canonical()
	}
	p.Write = append(p.Write, given(place.Work)...)
	p.Protect = append(p.Protect, below(place.Work, startFiles)...)
	switch g := place.Git; {
	case g.Dir == "": // a repository that the command makes could have anything in it
		p.Protect = append(p.Protect, below(place.Work, []string{".git"})...)
	case g.Linked():
		p.Read = append(p.Read, g.Common)
		p.Write = append(append(p.Write, g.Dir), below(g.Common, gitWritable)...)
		p.Protect = append(append(p.Protect, below(g.Dir, worktreeFiles)...), below(place.Work, []string{".git"})...)
	default:
		if !within(g.Top, place.Work) { // it works in a part of the project
			p.Read, p.Write = append(p.Read, g.Top), append(p.Write, g.Dir)
			p.Protect = append(p.Protect, below(place.Work, []string{".git"})...)
		}
		p.Protect = append(p.Protect, below(g.Dir, gitFiles)...)
	}
	return p.Canonical()
}

// below returns the paths of these names below a directory; none if it is empty.
func below(dir string, names []string) (out []string) {
	if dir != "" {
		for _, name := range names {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

// Environ returns an environment in which programs keep temporary files and caches where a command at this place may write: a
// cache that is shared with programs outside could bring them something to run.
func (p Place) Environ(env []string) []string {
	if p.Temp == "" {
		return env
	}
	cache := p.Cache
	if cache == "" {
		cache = filepath.Join(p.Temp, "cache")
	}
	for _, v := range []struct{ name, value string }{
		{"TMPDIR", p.Temp}, {"XDG_CACHE_HOME", cache}, {"GOCACHE", filepath.Join(cache, "go-build")}, {"npm_config_cache", filepath.Join(cache, "npm")},
		{"PYTHONPYCACHEPREFIX", filepath.Join(cache, "python")},
	} {
		env = append(slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return strings.HasPrefix(kv, v.name+"=") }), v.name+"="+v.value)
	}
	return env
}

// FindGitAbove returns the repository in whose work tree a directory lies, but none whose top is one of the directories of last, or above.
func FindGitAbove(work string, files Files, read func(path string) (string, error), last ...string) Git {
	for dir := work; dir != "/" && (dir == work || !slices.ContainsFunc(last, func(end string) bool { return within(end, dir) })); dir = filepath.Dir(dir) {
		if g := FindGit(dir, files, read); g.Dir != "" {
			return g
		}
	}
	return Git{}
}

// FindGit returns the repository whose work tree has its top at a directory. What is no repository, or names one that is
// not there, is the zero Git.
func FindGit(work string, files Files, read func(path string) (string, error)) Git {
	dot := filepath.Join(work, ".git")
	switch files.Kind(dot) {
	case Directory:
		if files.Kind(filepath.Join(dot, "HEAD")) == Missing {
			return Git{}
		}
		return Git{Top: work, Dir: dot, Common: dot}
	case Other:
	default:
		return Git{}
	}
	dir, ok := pointer(dot, "gitdir: ", read)
	if !ok || files.Kind(dir) != Directory {
		return Git{}
	}
	common, ok := pointer(filepath.Join(dir, "commondir"), "", read)
	if !ok || files.Kind(common) != Directory || filepath.Dir(filepath.Dir(dir)) != common {
		return Git{} // a submodule, or a directory that the file has been made to name: no right follows from it
	}
	if back, ok := pointer(filepath.Join(dir, "gitdir"), "", read); !ok || back != dot {
		return Git{} // the repository does not know this work tree
	}
	return Git{Top: work, Dir: dir, Common: common}
}

// pointer returns the path that a file of git has in it, which is relative to the file's directory.
func pointer(file, prefix string, read func(string) (string, error)) (string, bool) {
	text, err := read(file)
	if err != nil {
		return "", false
	}
	to, ok := strings.CutPrefix(strings.TrimRight(text, "\r\n"), prefix)
	if !ok || to == "" {
		return "", false
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to), true
}
