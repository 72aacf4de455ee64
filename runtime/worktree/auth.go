package worktree

import (
	"context"
	"encoding/base64"
	"net/url"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// remoteURL is a URL as git is told it, and what it is told beside it.
type remoteURL struct {
	clean string             // without a password
	set   []plumbing.Setting // secret
}

// authenticate asks for the credentials of a repository. What a URL itself holds of them is taken off,
// since it would stand in the arguments of git and in its configuration.
func (m *Manager) authenticate(ctx context.Context, raw string) (remoteURL, error) {
	const op = "Provision"
	r := remoteURL{clean: raw}
	u, err := url.Parse(raw)
	isHTTP := err == nil && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https")) && u.Host != ""
	header, suppress := "", false
	if isHTTP {
		if pass, ok := u.User.Password(); ok {
			header = "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+pass))
		}
		u.User = nil
		r.clean = u.String()
	}
	if m.auth != nil {
		given, quiet, err := m.auth(ctx, r.clean)
		if err != nil {
			return r, types.Errorf(types.ErrAuth, op, shown(r.clean), "the credentials: %w", err)
		}
		if suppress = quiet; given != "" {
			header = given
		}
	}
	switch {
	case header != "" && !isHTTP:
		m.log.Warn("a header of credentials is not used: it can only be sent over HTTP", "repository", shown(r.clean))
	case strings.ContainsAny(header, "\r\n\x00"):
		return r, types.Errorf(types.ErrInvalid, op, shown(r.clean), "the header of credentials holds a line end")
	case header != "" && !m.git.env:
		return r, types.Errorf(types.ErrInvalid, op, shown(r.clean), "the URL holds a password, and the runner takes no environment in which it could be handed on: set Options.EnvCommandRunner")
	case header != "":
		scope := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
		r.set = append(r.set, plumbing.Set("http.extraHeader", ""), plumbing.Set("http."+scope.String()+".extraHeader", header))
	}
	if suppress {
		r.set = append(r.set, plumbing.Set("credential.helper", ""))
	}
	return r, nil
}

// shown returns a URL for people: without what may be secret in it.
func shown(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
