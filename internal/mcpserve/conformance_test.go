package mcpserve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/ipc"
	"rnix/types"
)

// The protocol's own suite, against the server over HTTP. What it wants of a test server (tools with fixed
// names, prompts) is in the baseline; what is in there and passes fails the test too.
func TestConformanceSuite(t *testing.T) {
	npm := os.Getenv("RNIX_TEST_NPM")
	node := filepath.Join(npm, "node_modules/node/bin/node")
	suite := filepath.Join(npm, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
	for _, file := range []string{node, suite} {
		if _, err := os.Stat(file); npm == "" || err != nil {
			t.Skip("needs the npm packages node@24 and @modelcontextprotocol/conformance in RNIX_TEST_NPM")
		}
	}
	soak.Turn(t)
	p := &Processes{Connect: func(context.Context) (*ipc.Client, error) {
		return nil, types.Errorf(types.ErrUnavailable, "Ensure", "", "there is no daemon in this test")
	}}
	address, token := serveHTTP(t, p)
	// The suite knows no token, so what stands between adds it; the rest is as it was sent.
	target := &url.URL{Scheme: "http", Host: address}
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	front := httptest.NewServer(&httputil.ReverseProxy{Transport: tr, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, suite, "server", "--url", front.URL+Path, "--expected-failures", "testdata/conformance.yml", "--output-dir", t.TempDir())
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
