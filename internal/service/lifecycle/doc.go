// Package lifecycle starts, resumes, forks, signals, renames and waits for processes, one alone or a whole family. It says what a name means and
// where a process lies: whoever acts on a process asks here, so that no verb decides for itself whether its target runs, is suspended on disk,
// or has ended. It also says what a caller inside an agent may do.
//
// It owns no state. What runs it asks of the kernel, what is stored of the index, and what is archived or deleted of the archive, each by an
// interface of its own. Opening a history and starting its process is internal/launch; this package decides which, in which order, and what
// becomes of those above and below.
package lifecycle
