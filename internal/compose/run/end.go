package run

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"rnix/internal/compose"
	"rnix/kernel"
	"rnix/types"
)

// expand finds the items of a node with foreach, and notes them: who goes on with the run finds the same.
func (r papers) expand(k compose.Key) {
	n := compose.Note{Round: r.state.Round(), Phase: compose.Expanded, At: time.Now()}
	items, err := r.items(r.plan.File.Agents[k.Node].ForEach)
	if err != nil {
		n.Phase, n.Kind, n.Why = compose.Failed, compose.Error, err.Error()
	} else {
		n.Items = items
	}
	r.note(k, n)
}

func (r papers) items(f *compose.ForEach) ([]any, error) {
	switch {
	case f.From != "":
		g := r.state.Results(f.From)
		if len(g) == 1 && g[0].Key.Index < 0 && g[0].UUID != (types.UUID{}) {
			text, err := r.text(g[0])
			if err != nil {
				return nil, err
			}
			return compose.Items(f.From, text, f.Limit())
		}
		items := make([]any, 0, len(g)) // of a node with foreach: one for each of its instances
		for _, one := range g {
			if one.UUID == (types.UUID{}) {
				continue
			}
			text, err := r.text(one)
			if err != nil {
				return nil, err
			}
			items = append(items, text)
		}
		return items, tooMany(len(items), f.Limit())
	case f.Files != "":
		pattern, err := f.Pattern(r.plan.File.Vars)
		if err != nil {
			return nil, err
		}
		return files(r.spec.Dir, pattern, f.Limit())
	}
	items, err := f.List(r.plan.File.Vars)
	if err != nil {
		return nil, err
	}
	return items, tooMany(len(items), f.Limit())
}

func tooMany(n, limit int) error {
	if n > limit {
		return fmt.Errorf("foreach has %d items, and takes at most %d; raise its max", n, limit)
	}
	return nil
}

// files returns the regular files below a directory that match a pattern, in order.
func files(dir, pattern string, limit int) ([]any, error) {
	var names []string
	err := doublestar.GlobWalk(os.DirFS(dir), pattern, func(path string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return nil
		}
		names = append(names, path)
		return tooMany(len(names), limit)
	}, doublestar.WithNoFollow(), doublestar.WithFailOnIOErrors())
	if err != nil {
		return nil, fmt.Errorf("files %s: %w", pattern, err)
	}
	slices.Sort(names)
	items := make([]any, len(names))
	for i, n := range names {
		items[i] = n
	}
	return items, nil
}

// over is the end of a run of which all nodes have ended.
func (r papers) over() kernel.End {
	text, ok := compose.Summary(r.state.Report())
	end := kernel.End{Exit: types.ExitStatus{Reason: types.ReasonCompleted}}
	if !ok {
		err := types.Errorf(types.ErrDriver, "Compose", r.spec.Name, "%s", text)
		end.Exit = types.ExitStatus{Code: types.ExitError, Reason: text, Err: err}
	}
	end.Result = r.result()
	return end
}

// maxResult bounds the result of a run, in bytes.
const maxResult = 1 << 20

// result is what those nodes have brought for which no other waits: of one its result as it is, of
// several one after the other, each behind its name.
func (r papers) result() string {
	var given []compose.Given
	for _, name := range r.plan.Sinks() {
		for _, g := range r.state.Results(name) {
			if g.Phase == compose.Succeeded && g.UUID != (types.UUID{}) {
				given = append(given, g)
			}
		}
	}
	var b strings.Builder
	for _, g := range given {
		text, err := r.text(g)
		if err != nil {
			text = "[" + err.Error() + "]"
		}
		if room := maxResult - b.Len(); len(text) > room {
			text = strings.ToValidUTF8(text[:max(room, 0)], "") + "\n[cut: the whole result is that of " + g.UUID.String() + "]"
		}
		if len(given) == 1 {
			return text
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", g.Key, strings.TrimSpace(text))
		if b.Len() > maxResult {
			break
		}
	}
	return strings.TrimSpace(b.String())
}

// How long nodes may take to end when the run is ended.
const (
	politely = 5 * time.Second
	atAll    = 5 * time.Second
)

// cut is the end of a run whose context has ended. Its nodes end with it, unless the kernel stops: nothing
// keeps running unseen.
func (r family) cut(cause error) kernel.End {
	if kernel.IsStop(cause) {
		r.wg.Wait()
		return kernel.End{Cause: cause}
	}
	if r.failed == nil { // what the daemon does not come to now, the next one does
		_ = r.self.Note(endingKey, Ending{Round: r.state.Round(), Exit: kernel.ExitOf(cause)})
	}
	r.self.SetWait("its nodes to end", time.Time{})
	var nodes []*kernel.Process
	for _, id := range r.state.Live() { // also those that it has not heard of yet
		if p, ok := r.self.Kernel().ByUUID(id); ok {
			nodes = append(nodes, p)
		}
	}
	for _, how := range []struct {
		sig      types.Signal
		patience time.Duration
	}{{types.SIGTERM, politely}, {types.SIGKILL, atAll}} {
		for _, p := range nodes {
			_, _ = r.self.By().SignalTree(p.PID, how.sig) // it may have ended
		}
		ctx, cancel := context.WithTimeout(context.Background(), how.patience)
		nodes = slices.DeleteFunc(nodes, func(p *kernel.Process) bool {
			_, err := r.self.By().WaitInfo(ctx, p.PID)
			return err == nil
		})
		cancel()
	}
	for _, id := range r.state.Live() {
		if _, ok := r.self.Kernel().ByUUID(id); !ok { // else it would go on by itself when its time has come
			_ = r.self.Dismiss(context.Background(), id, ReasonEnded) // it may have ended, or never begun
		}
	}
	if len(nodes) == 0 {
		r.wg.Wait()
	}
	return kernel.End{Cause: cause}
}

// waits says what the run waits for.
func (r *Run) waits() string {
	var names []string
	for _, n := range r.Nodes() {
		if n.PID != 0 {
			names = append(names, n.Key.String())
		}
	}
	switch {
	case r.held:
		return ""
	case len(r.unborn) > 0 && len(names) == 0:
		return "room for its nodes"
	case len(names) == 0:
		return "the next attempt of a node"
	case len(names) > 4:
		return strings.Join(names[:4], ", ") + " and " + types.Counted(len(names)-4, "more node", "more nodes")
	}
	return strings.Join(names, ", ")
}
