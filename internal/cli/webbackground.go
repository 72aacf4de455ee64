package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/web"
	"rnix/ipc"
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
	l, err := ipc.TakeLock(at+".lock", n.Socket)
	for tries := 0; types.CodeOf(err) == types.ErrConflict && tries < noteTries; tries++ { // one that had the port is just ending
		time.Sleep(noteEvery)
		l, err = ipc.TakeLock(at+".lock", n.Socket)
	}
	if err != nil {
		return func() {}
	}
	_, _ = l.Keep()
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

// How often, and how long, a dashboard waits for the note of one that had its port before.
const (
	noteTries = 20
	noteEvery = 50 * time.Millisecond
)

// dashboards returns the dashboards of this user that run, as far as they are known.
func dashboards(dir string) []webNote {
	var out []webNote
	entries, _ := os.ReadDir(dir) // without it none is known
	for _, e := range entries {
		at, ok := strings.CutSuffix(filepath.Join(dir, e.Name()), ".json")
		if !ok || !strings.HasPrefix(e.Name(), "web-") {
			continue
		}
		holder, held, err := ipc.LockHolder(at + ".lock")
		if err != nil || !held {
			continue
		}
		var n webNote
		if text, err := os.ReadFile(at + ".json"); err == nil && json.Unmarshal(text, &n) == nil && n.PID == holder.PID { // else it is of an earlier one
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

// dashboardAt says which dashboard has a port; "" if none is known to have it.
func dashboardAt(socket string, port int) string {
	for _, n := range dashboards(filepath.Dir(socket)) {
		switch {
		case n.Port != port || port == 0:
		case n.Socket != socket:
			return "the dashboard of the data directory " + n.DataDir + ", as PID " + strconv.Itoa(n.PID)
		case n.Background:
			return "the dashboard of this daemon in the background, as PID " + strconv.Itoa(n.PID)
		default:
			return "the dashboard of this daemon in a terminal, as PID " + strconv.Itoa(n.PID) + ", where Enter shows another link"
		}
	}
	return ""
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
	var choice []string
	if o.chosen {
		choice = atPort(o.port)
	}
	ready, err := launchDashboard(ctx, a, a.host.Dir, choice...)
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

func atPort(n int) []string { return []string{"--port", strconv.Itoa(n)} }

// launchDashboard starts the dashboard as another program in a directory, with further arguments of rnix web, and returns where it is.
func launchDashboard(ctx context.Context, a *app, dir string, args ...string) (webReady, error) {
	exe, err := os.Executable()
	if err != nil {
		return webReady{}, types.Errorf(types.ErrInternal, "Background", "", "the path of this program is unknown: %w", err)
	}
	line, err := web.Background(ctx, exe, dir, append([]string{"web", "--json", "--no-open", "--background"}, args...), a.host.Environ)
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
// the command goes on. Its link is the only one, and lets in whoever reads it, so a command that cannot show it on a terminal starts none:
// rnix web --detach does so later. Neither does one that fills the terminal.
func withDashboard(ctx context.Context, a *app, socket string) {
	if a.noDashboard || !a.out.talks() || !a.out.err.terminal {
		return
	}
	port := wantedPort(a)
	if port == 0 || inBackground(socket, port) != nil {
		return
	}
	for _, n := range dashboards(filepath.Dir(socket)) {
		switch {
		case n.Port != port:
		case n.Socket == socket: // it serves from a terminal
			return
		default:
			a.out.warn(dashboardMissing + "port " + strconv.Itoa(port) + " is used by the dashboard of the data directory " + n.DataDir)
			return
		}
	}
	dir := a.host.Dir
	if home, err := os.Stat(a.getenv("HOME")); err == nil && home.IsDir() && filepath.IsAbs(a.getenv("HOME")) {
		dir = a.getenv("HOME") // where somebody happened to be has nothing to do with it
	}
	ready, err := launchDashboard(ctx, a, dir, atPort(port)...)
	if err != nil {
		a.out.warn(dashboardMissing + errorText(err))
		return
	}
	a.out.talk("[kernel] dashboard %s", ready.Link)
}

const dashboardMissing = "the dashboard (web.port of config.yaml) is not there: "
