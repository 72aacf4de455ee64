// Package lifecycle says what a name means and where a process lies: whoever acts on a process asks here, so that no verb decides for itself
// whether its target runs, is suspended on disk, or has ended. It also finds the whole family of a process, wherever its members lie.
//
// It owns no state. What runs it asks of the kernel, what is stored of the index, and what is archived or deleted of the archive, each by an
// interface of its own. Of the wire it answers rename, which gives a process another name wherever it lies.
package lifecycle
