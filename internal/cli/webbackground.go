package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/web"
	"rnix/runtime/statehome"
	"rnix/types"
)

// webNote is what a dashboard says of itself in the directory of the sockets, which all data directories of a user share: in web-PORT.json, with
// web-PORT.lock held as long as it runs.
type webNote struct {
	webReady
	Socket     string `json:"socket"` // of the daemon that it shows
	DataDir    string `json:"data_dir"`
	Background bool   `json:"background"`
}

// noteFile returns the path of a note without its suffix.
func noteFile(dir string, port int) string { return filepath.Join(dir, "web-"+strconv.Itoa(port)) }

// note says that this dashboard runs, until the returned function is called. Where it cannot, another one is started beside it later, or told that
// an unknown program has the port; no more is lost.
func (n webNote) note() (stop func()) {
	at := noteFile(filepath.Dir(n.Socket), n.Port)
	l, err := durable.OS.Lock(at + ".lock")
	if err != nil {
		return func() {}
	}
	n.Link = "" // it would let in whoever can read the note, such as a shell of an agent
	text, err := json.Marshal(n)
	if err == nil {
		_ = durable.WriteFile(durable.OS, at+".json", text, durable.Cached)
	}
	return func() {
		// Ports are many, and files are not to pile up.
		_, _ = os.Remove(at+".json"), os.Remove(at+".lock")
		_ = l.Close()
	}
}

// dashboards returns the dashboards of this user that run, as far as they are known.
func dashboards(dir string) []webNote {
	var out []webNote
	entries, _ := os.ReadDir(dir) // without it none is known
	for _, e := range entries {
		at, ok := strings.CutSuffix(filepath.Join(dir, e.Name()), ".json")
		if !ok || !strings.HasPrefix(e.Name(), "web-") {
			continue
		}
		l, err := durable.OS.Lock(at + ".lock")
		if err == nil {
			_ = l.Close()
			continue
		}
		var n webNote
		if text, rerr := os.ReadFile(at + ".json"); rerr == nil && types.CodeOf(err) == types.ErrConflict && json.Unmarshal(text, &n) == nil {
			out = append(out, n)
		}
	}
	return out
}

// inBackground returns the dashboard of a daemon that runs in the background, on a port or on any (0); nil if none is known.
func inBackground(socket string, port int) *webReady {
	for _, n := range dashboards(filepath.Dir(socket)) {
		if n.Background && n.Socket == socket && (port == 0 || n.Port == port) {
			return &n.webReady
		}
	}
	return nil
}

// background starts the dashboard as another program.
func (o *webOptions) background(ctx context.Context, socket string) error {
	a := o.app
	port := 0
	if o.chosen {
		port = o.port
	}
	if r := inBackground(socket, port); r != nil {
		if a.out.json() {
			a.out.object(r)
			return nil
		}
		a.out.print("dashboard  " + r.Address + "\n")
		a.out.talk("it runs in the background already, as PID %d; a browser that was let in lets others in on the page System; end it with: kill %d, and start it again if none was", r.PID, r.PID)
		return nil
	}
	ready, err := launchDashboard(ctx, a, a.host.Dir, o.port)
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

// launchDashboard starts the dashboard as another program in a directory, and returns where it is.
func launchDashboard(ctx context.Context, a *app, dir string, port int) (webReady, error) {
	exe, err := os.Executable()
	if err != nil {
		return webReady{}, types.Errorf(types.ErrInternal, "Background", "", "the path of this program is unknown: %w", err)
	}
	line, err := web.Background(ctx, exe, dir, []string{"web", "--json", "--no-open", "--background", "--port", strconv.Itoa(port)}, a.host.Environ)
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

// wantedPort is web.port of the user's config.yaml: where the dashboard is that is started with the daemon; 0 = nothing is said.
func wantedPort(a *app) int {
	dir, err := statehome.ConfigDir(a.env)
	if err != nil {
		return 0
	}
	return config.Load(config.Sources{UserDir: dir, Home: a.getenv("HOME")}).WebPort.V
}

// withDashboard starts the dashboard that config.yaml wants beside a daemon that was just started, if none runs. Why it cannot run is said;
// the command goes on. Its link is the only one, so a command that cannot show it starts none: rnix web --detach does so later. Neither does
// one that fills the terminal, from whatever goroutine it asks.
func withDashboard(ctx context.Context, a *app, socket string) {
	if a.ownDashboard || a.filled.Load() || !a.out.talks() {
		return
	}
	port := wantedPort(a)
	if port == 0 || inBackground(socket, 0) != nil {
		return
	}
	for _, n := range dashboards(filepath.Dir(socket)) {
		switch {
		case n.Port != port:
		case n.Socket == socket: // it serves from a terminal
			return
		default:
			a.out.warn(noDashboard + "port " + strconv.Itoa(port) + " is used by the dashboard of the data directory " + n.DataDir)
			return
		}
	}
	dir := a.host.Dir
	if home := a.getenv("HOME"); filepath.IsAbs(home) {
		dir = home // where somebody happened to be has nothing to do with it
	}
	ready, err := launchDashboard(ctx, a, dir, port)
	if err != nil {
		a.out.warn(noDashboard + errorText(err))
		return
	}
	a.out.talk("[kernel] dashboard %s", ready.Link)
}

const noDashboard = "the dashboard (web.port of config.yaml) is not there: "
