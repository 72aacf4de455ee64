package config

import (
	"slices"
	"strings"
	"time"

	"rnix/agent"
)

// The kinds of what is told of.
const (
	NoticeAsk       = "ask"       // a person is asked about a call
	NoticeFailed    = "failed"    // what a person has started has ended without success
	NoticeSuspended = "suspended" // it is suspended, and not with the daemon
	NoticeDone      = "done"      // it has ended with success
)

// Notices are the kinds, the most urgent first.
var Notices = []string{NoticeAsk, NoticeFailed, NoticeSuspended, NoticeDone}

// The bounds of notify.every, and its default.
const (
	minNotifyEvery     = time.Second
	maxNotifyEvery     = 24 * time.Hour
	defaultNotifyEvery = 5 * time.Second
)

// Notify says how a person is told of what happens. It is the user's only: it runs programs and sends what agents do.
type Notify struct {
	On       Value[[]string]       // of Notices
	Command  Value[[]string]       // a program and its arguments; nil = none
	Desktop  Value[bool]           // by notify-send
	Post     Value[string]         // a URL that gets JSON; "" = none
	TokenEnv Value[string]         // the variable with a bearer token for it; "" = none
	Every    Value[agent.Duration] // the least time between two
}

// Told reports whether anything is told at all.
func (n *Notify) Told() bool { return len(n.Command.V) > 0 || n.Desktop.V || n.Post.V != "" }

type notifyLayer struct {
	On       []string        `yaml:"on"`
	Command  []string        `yaml:"command"`
	Desktop  *bool           `yaml:"desktop"`
	Post     *string         `yaml:"post"`
	TokenEnv *string         `yaml:"token_env"`
	Every    *agent.Duration `yaml:"every"`
}

// notifyDefaults is what holds if nothing is said.
func notifyDefaults() Notify {
	return Notify{On: Value[[]string]{Notices, FromDefault}, Command: Value[[]string]{nil, FromDefault}, Desktop: Value[bool]{false, FromDefault},
		Post: Value[string]{"", FromDefault}, TokenEnv: Value[string]{"", FromDefault}, Every: Value[agent.Duration]{agent.Duration(defaultNotifyEvery), FromDefault}}
}

// apply takes over what a layer says of notices.
func (n *Notify) apply(l *notifyLayer, s sink) {
	if l.On != nil && s.usersOnly("notify.on") {
		ok := true
		for _, kind := range l.On {
			if !slices.Contains(Notices, kind) {
				s.problem("notify.on", "%q is not known; write some of %s", kind, strings.Join(Notices, ", "))
				ok = false
			}
		}
		if ok {
			n.On = Value[[]string]{l.On, s.origin("notify.on")}
		}
	}
	if l.Command != nil && s.usersOnly("notify.command") {
		n.Command = Value[[]string]{l.Command, s.origin("notify.command")}
	}
	if v := l.Desktop; v != nil && s.usersOnly("notify.desktop") {
		n.Desktop = Value[bool]{*v, s.origin("notify.desktop")}
	}
	if v := l.Post; v != nil && s.usersOnly("notify.post") {
		if *v != "" && !validURL(*v) {
			s.problem("notify.post", "must begin with http:// or https:// and name a host, without user and password")
		} else {
			n.Post = Value[string]{*v, s.origin("notify.post")}
		}
	}
	if v := l.TokenEnv; v != nil && s.usersOnly("notify.token_env") {
		if !variableName().MatchString(*v) {
			s.problem("notify.token_env", "must be the name of a variable; the token itself must not stand in a file")
		} else {
			n.TokenEnv = Value[string]{*v, s.origin("notify.token_env")}
		}
	}
	if n.TokenEnv.V != "" && n.Post.V == "" && l.TokenEnv != nil && s.warn != nil {
		s.warn("notify.token_env", "is for notify.post, which is not set: nothing is sent with it")
	}
	if v := l.Every; v != nil && s.usersOnly("notify.every") {
		if d := time.Duration(*v); d < minNotifyEvery || d > maxNotifyEvery {
			s.problem("notify.every", "%s must be between %s and %s", *v, minNotifyEvery, maxNotifyEvery)
		} else {
			n.Every = Value[agent.Duration]{*v, s.origin("notify.every")}
		}
	}
}
