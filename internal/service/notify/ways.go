package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/types"
)

// How long one attempt may take, and after which times it is tried again.
const attemptTime = 20 * time.Second

var tryAgain = []time.Duration{time.Second, 5 * time.Second, 30 * time.Second}

// way is one of the ways in which a person is told.
type way struct {
	name string
	tell func(ctx context.Context, n *Notice) error
}

// ways returns how the configuration says that a person is told.
func (d *Service) ways(c *config.Notify) (out []way) {
	if argv := c.Command.V; len(argv) > 0 {
		out = append(out, way{"command", func(ctx context.Context, n *Notice) error { return d.run(ctx, argv, n) }})
	}
	if c.Desktop.V {
		out = append(out, way{"desktop", func(ctx context.Context, n *Notice) error {
			urgency := "normal"
			if n.Items[0].Kind == config.NoticeAsk {
				urgency = "critical"
			}
			return d.run(ctx, []string{"notify-send", "--app-name=Rnix", "--urgency=" + urgency, "--", n.Title, html.EscapeString(n.Text)}, n) // its text is markup
		}})
	}
	if c.Post.V != "" {
		out = append(out, way{"post", func(ctx context.Context, n *Notice) error { return d.post(ctx, c, n) }})
	}
	return out
}

// run runs a program of the user's, as the user: with the notice as JSON on its standard input, and in variables.
func (d *Service) run(ctx context.Context, argv []string, n *Notice) error {
	in, err := json.Marshal(n)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	child, err := d.Start.Start(ctx, proc.Spec{
		Kind: proc.KindNotice, Path: argv[0], Args: argv[1:], Dir: d.Home, Input: append(in, '\n'), Stdout: io.Discard, Stderr: limited{&out}, Timeout: attemptTime,
		Env: append(os.Environ(), "RNIX_NOTICE_KIND="+n.Items[0].Kind, "RNIX_NOTICE_TITLE="+n.Title, "RNIX_NOTICE_TEXT="+n.Text), Box: &proc.Box{Plan: sandbox.Plan{Policy: sandbox.Everything()}},
	})
	if types.CodeOf(err) == types.ErrNotFound {
		return fmt.Errorf("%s is not in the PATH of the daemon: install it, or write its whole path", argv[0])
	}
	if err != nil {
		return err
	}
	switch r := child.Wait(); {
	case r.Err != nil:
		return r.Err
	case r.Code != 0:
		return fmt.Errorf("%s exited with %d: %s", argv[0], r.Code, strings.TrimSpace(out.String()))
	}
	return nil
}

// limited keeps the beginning of what is written.
type limited struct{ b *bytes.Buffer }

func (l limited) Write(p []byte) (int, error) {
	l.b.Write(p[:min(len(p), max(500-l.b.Len(), 0))])
	return len(p), nil
}

// post sends a notice as JSON.
func (d *Service) post(ctx context.Context, c *config.Notify, n *Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Post.V, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "rnix")
	if name := c.TokenEnv.V; name != "" {
		token, ok := d.Lookup(name)
		if !ok || token == "" {
			return types.Errorf(types.ErrAuth, "Notify", name, "the variable is not set where the daemon was started")
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the address may hold a secret
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // for the connection
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return nil
}
