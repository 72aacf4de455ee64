package ash

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Run runs the script of the child with a host, and returns its exit code. say shows an error that ends
// it.
func (c *Child) Run(host Host, environ []string, dir string, complete Completer, say func(error)) int {
	script := c.Script
	if script.Check {
		if _, err := compile(script.Name, script.Text); err != nil {
			say(err)
			return exitUsage
		}
		return 0
	}
	s, err := New(Config{Name: script.Name, Args: script.Args, Options: script.Options, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: c.Stderr,
		Environ: environ, Dir: dir, Terminal: script.Terminal, Host: host, Agent: c.Started})
	if err != nil {
		say(err)
		return exitError
	}
	if script.Terminal {
		signal.Ignore(syscall.SIGTSTP) // there is nobody above who would let us go on
	}
	c.Attend(s)
	var code int
	if script.Terminal {
		code = s.Interact(script.History, complete, say)
	} else if code, err = s.Run(script.Name, script.Text, true); err != nil {
		say(err)
	}
	c.tellCut(s.jobs.cut())
	return code
}

// tellCut tells of the jobs that end with the shell.
func (c *Child) tellCut(list []*job) {
	const most = 5
	for _, j := range list[:min(len(list), most)] {
		_, _ = fmt.Fprintf(c.Stderr, "[%d] was cut off, since the shell has ended: %s\n", j.id, j.text)
	}
	if len(list) > most {
		_, _ = fmt.Fprintf(c.Stderr, "... and %d more\n", len(list)-most)
	}
	if len(list) > 0 {
		_, _ = fmt.Fprintln(c.Stderr, "  a script waits for what it has in the background with: wait")
	}
}
