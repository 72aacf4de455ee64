package kernel

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"time"

	"rnix/internal/step"
	"rnix/vfs"
)

// gitFresh is how long later runs are told of the repository what the record has, as it stands there: no provider keeps a prompt for longer, and with another
// text it would read the whole conversation anew.
const gitFresh = time.Hour

// atFiles are the devices by which an agent looks at its working directory, or does something there.
var atFiles = []string{"/dev/fs", "/dev/workspace", "/dev/shell"}

// placed adds to what a process is told where it works, on which day, which is that on which its run began, and what git said of the place: all of it the
// same in each step, so that a provider can cache it.
func placed(base, dir string, today time.Time, git string) string {
	if dir == "" {
		return base
	}
	text := base + "\n\nToday is " + today.Local().Format("Monday, 2 January 2006") + ". The system is " + runtime.GOOS + " on " + runtime.GOARCH +
		".\nYour working directory is " + dir + ". Relative paths start there."
	if git != "" {
		text += "\n" + git
	}
	return strings.TrimPrefix(text, "\n\n")
}

// lookAround settles what an agent is told of the git repository in which it works. One that can do nothing there is not told of it, and agent CLIs tell their
// models themselves.
func lookAround(ctx context.Context, k *KernelImpl, p *Process) {
	if p.WorkDir == "" || isCLI(p) || !slices.ContainsFunc(p.kit.list, worksOnFiles) {
		return
	}
	told := step.GitTold{Dir: p.WorkDir, At: time.Now()}
	if f := p.opts.From; f != nil && stillTold(f.Was.Git, p.WorkDir, told.At) {
		told = *f.Was.Git
	} else if told.Text = k.cfg.Secrets.String(k.cfg.Workspace.GitState(ctx, p)); told.Text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.git = &told
	tellLocked(p, p.basePrompt, p.skills)
}

// stillTold reports whether what the last run was told of its repository is told again: it is in the same directory, and told not long ago.
func stillTold(was *step.GitTold, dir string, now time.Time) bool {
	if was == nil || was.Dir != dir {
		return false
	}
	age := now.Sub(was.At)
	return age >= 0 && age < gitFresh && now.Local().YearDay() == was.At.Local().YearDay()
}

func worksOnFiles(t vfs.Tool) bool {
	return slices.ContainsFunc(atFiles, func(device string) bool { return vfs.Below(t.Path, device) })
}

// isCLI reports whether an agent CLI is the model of a process.
func isCLI(p *Process) bool { return strings.HasSuffix(p.model.Driver, "-agent") }

// gitOf returns what a process is told of the git repository in which it works; nil = nothing.
func gitOf(p *Process) *step.GitTold {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.git
}
