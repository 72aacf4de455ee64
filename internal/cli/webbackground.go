package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/web"
	"rnix/runtime/statehome"
	"rnix/types"
)

// The dashboard in the background has this lock as long as it runs, and says beside it where it is.
const (
	webLock = "web.lock"
	webNote = "web.json"
)

// noteBackground says in a directory that this dashboard runs, until the returned function is called. Where it cannot, another one is started
// beside it later; no more is lost.
func noteBackground(dir string, ready *webReady) (stop func()) {
	l, err := durable.OS.Lock(filepath.Join(dir, webLock))
	if err != nil {
		return func() {}
	}
	note, err := json.Marshal(&webReady{Address: ready.Address, Port: ready.Port, PID: ready.PID})
	if err == nil {
		_ = durable.WriteFile(durable.OS, filepath.Join(dir, webNote), note, durable.Cached)
	}
	return func() { _ = l.Close() }
}

// inBackground returns the dashboard that runs in the background, nil if none is known.
func inBackground(dir string) *webReady {
	l, err := durable.OS.Lock(filepath.Join(dir, webLock))
	if err == nil {
		_ = l.Close()
		return nil
	}
	if types.CodeOf(err) != types.ErrConflict {
		return nil
	}
	var r webReady
	note, err := os.ReadFile(filepath.Join(dir, webNote))
	if err != nil || json.Unmarshal(note, &r) != nil {
		return nil
	}
	return &r
}

// background starts the dashboard as another program.
func (o *webOptions) background(ctx context.Context, dir string) error {
	a := o.app
	if r := inBackground(dir); r != nil && (!o.chosen || o.port == 0 || o.port == r.Port) {
		if a.out.json() {
			a.out.object(r)
			return nil
		}
		a.out.print("dashboard  " + r.Address + "\n")
		a.out.talk("it runs in the background already, as PID %d; a browser that was let in lets others in on the page System; end it with: kill %d", r.PID, r.PID)
		return nil
	}
	ready, err := launchDashboard(ctx, a, o.port)
	if err != nil {
		return err
	}
	if a.out.json() {
		a.out.object(&ready)
		return nil
	}
	a.out.print("dashboard  " + ready.Link + "\n")
	a.out.talk("the link lets one browser in, once; the dashboard runs in the background as PID %d and is ended with: kill %d", ready.PID, ready.PID)
	return nil
}

// launchDashboard starts the dashboard as another program, and returns where it is.
func launchDashboard(ctx context.Context, a *app, port int) (webReady, error) {
	exe, err := os.Executable()
	if err != nil {
		return webReady{}, types.Errorf(types.ErrInternal, "Background", "", "the path of this program is unknown: %w", err)
	}
	line, err := web.Background(ctx, exe, a.host.Dir, []string{"web", "--json", "--no-open", "--background", "--port", strconv.Itoa(port)}, a.host.Environ)
	if err != nil {
		return webReady{}, err
	}
	var ready struct {
		webReady
		Error *types.WireError `json:"error"`
	}
	switch err := json.Unmarshal([]byte(line), &ready); {
	case err != nil:
		return webReady{}, types.Errorf(types.ErrInternal, "Background", "", "what the dashboard says is not understood: %w", err)
	case ready.Error != nil:
		return webReady{}, ready.Error.FromWire()
	}
	return ready.webReady, nil
}

// wantedPort is web.port of the user's config.yaml: where the dashboard is whenever the daemon runs; 0 = nothing is said.
func wantedPort(a *app) int {
	dir, err := statehome.ConfigDir(a.env)
	if err != nil {
		return 0
	}
	return config.Load(config.Sources{UserDir: dir, Home: a.getenv("HOME")}).WebPort.V
}

// withDashboard starts the dashboard that config.yaml wants beside a daemon that was just started, if none runs. Why it cannot run is said;
// the command goes on.
func withDashboard(ctx context.Context, a *app, socket string) {
	port := wantedPort(a)
	if port == 0 || inBackground(filepath.Dir(socket)) != nil {
		return
	}
	ready, err := launchDashboard(ctx, a, port)
	if err != nil {
		a.out.warn("the dashboard (web.port of config.yaml) is not there: " + errorText(err))
		return
	}
	a.out.talk("[kernel] dashboard %s", ready.Link)
}
