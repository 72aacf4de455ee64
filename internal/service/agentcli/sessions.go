package agentcli

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"rnix/drivers/fs"
	"rnix/drivers/harness"
	"rnix/drivers/llm"
	wsdriver "rnix/drivers/workspace"
	"rnix/internal/gateway"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
	"rnix/vfs"
)

// Dir is the private directory of a session, below its history. A command line may keep its own record
// of the session there, so it is archived and removed with the history.
func (d *Service) Dir(id string) string {
	var u types.UUID
	if u.UnmarshalText([]byte(id)) != nil { // a request that no process has made
		return filepath.Join(os.TempDir(), "rnix-harness")
	}
	return filepath.Join(d.Histories(u), "harness")
}

// StateOf says where the state.json of a session is, and what a platform calls it.
func (d *Service) StateOf(id, workDir string) harness.StatePlace {
	at := harness.StatePlace{Root: d.stateRoot(id, workDir)}
	var u types.UUID
	if u.UnmarshalText([]byte(id)) == nil {
		at.Issue, at.Worker = d.Platforms.Names(u)
	}
	return at
}

// Confirmed notes in its state.json that the platform has confirmed the lease of a session, at a time in ms since 1970.
func (d *Service) Confirmed(id types.UUID, at int64) {
	info, ok := d.Index.Get(id)
	if !ok {
		return
	}
	if err := harness.Beat(d.stateRoot(id.String(), info.WorkDir), id.String(), at); err != nil {
		d.Log.Debug("the state of a session does not say when the platform has confirmed it", "uuid", id, "err", err)
	}
}

// stateRoot is below which directory the state.json of a session is: its work tree if that is its own.
func (d *Service) stateRoot(id, workDir string) string {
	var u types.UUID
	if u.UnmarshalText([]byte(id)) == nil && vfs.Below(workDir, d.Trees.Home(u)) {
		return workDir
	}
	return d.Dir(id)
}

// MayAct reports whether the process of a session may run commands, and read and write files: what a command line does by tools of
// its own, of which the kernel is not asked.
func (d *Service) MayAct(ctx context.Context) bool {
	p, ok := d.Kernel.Process(llm.CallerFrom(ctx).PID)
	if !ok {
		return false
	}
	for _, device := range []string{"/dev/shell", fs.Path, wsdriver.Path} {
		if !p.Rights.Permits(device) {
			return false
		}
	}
	return true
}

// Open makes the bridge over which sessions reach the kernel, after the sweep.
func (d *Service) Open() *harness.Bridge {
	d.sweep()
	d.bridge = harness.NewBridge(d.Program, d.Socket)
	d.bridge.Conceal(d.Secrets)
	d.vendors = gateway.NewVendors(d.Log)
	return d.bridge
}

// dying is how long before the end of a daemon a process may have ended whose session it could not close any more.
const dying = time.Hour

// sweep removes what command lines of a daemon that crashed have left and what could be used to act for them. They had
// not ended, or only just.
func (d *Service) sweep() {
	all := d.Index.List()
	var last time.Time
	for i := range all {
		if t := all[i].UpdatedAt; t.After(last) {
			last = t
		}
	}
	for i := range all {
		if p := &all[i]; p.Exit != nil && last.Sub(p.UpdatedAt) > dying {
			continue
		}
		if err := harness.Sweep(d.Dir(all[i].UUID.String())); err != nil {
			d.Note("what a session has left cannot be removed: %v", err)
		}
		if err := harness.Stopped(d.stateRoot(all[i].UUID.String(), all[i].WorkDir), all[i].UUID.String()); err != nil {
			d.Note("the state of a session does not say that it has stopped: %v", err)
		}
	}
}

// tools lists what a session may call.
func (d *Service) tools(_ context.Context, peer *ipc.Peer, req ipc.SessionToolsRequest) (ipc.SessionToolsResponse, error) {
	id, tools, err := d.bridge.Tools(req.Credential)
	if err != nil {
		return ipc.SessionToolsResponse{}, err
	}
	pid, err := d.own(peer, id)
	if err != nil {
		return ipc.SessionToolsResponse{}, err
	}
	var u types.UUID
	if err := u.UnmarshalText([]byte(id)); err != nil {
		return ipc.SessionToolsResponse{}, types.Errorf(types.ErrInternal, "Session", id, "%w", err)
	}
	r := ipc.SessionToolsResponse{PID: pid, UUID: u, Tools: make([]ipc.SessionTool, len(tools))}
	for i, t := range tools {
		r.Tools[i] = ipc.SessionTool{Name: t.Name, Description: t.Description, InputSchema: t.Schema}
	}
	return r, nil
}

// call has the kernel run a call of a session. It counts as work for as long as the call takes.
func (d *Service) call(ctx context.Context, peer *ipc.Peer, req ipc.SessionCallRequest) (ipc.SessionCallResponse, error) {
	id, _, err := d.bridge.Tools(req.Credential)
	if err != nil {
		return ipc.SessionCallResponse{}, err
	}
	if _, err := d.own(peer, id); err != nil {
		return ipc.SessionCallResponse{}, err
	}
	text, failed, err := d.bridge.Call(ctx, req.Credential, req.Name, req.Input)
	return ipc.SessionCallResponse{Output: text, IsError: failed}, err
}

// own refuses a caller inside another agent: a credential that it has found somewhere is worth nothing to it.
func (d *Service) own(peer *ipc.Peer, id string) (types.PID, error) {
	var u types.UUID
	if err := u.UnmarshalText([]byte(id)); err != nil {
		return 0, types.Errorf(types.ErrInternal, "Session", id, "%w", err)
	}
	p, ok := d.Kernel.ByUUID(u)
	if !ok {
		return 0, types.Errorf(types.ErrNotFound, "Session", id, "its process has ended")
	}
	pid := p.PID
	if owner, inside := d.Callers.AgentOf(peer); inside && owner != pid {
		return 0, service.Outside("Session", owner, "not act for another process")
	}
	return pid, nil
}
