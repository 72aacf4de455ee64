package event

import "rnix/internal/redact"

// Conceal has l take the secrets of a set out of all events. It is called before l is used.
func (l *Log) Conceal(secrets *redact.Set) { l.secrets = secrets }

// concealed returns the event without the secrets of a set: another one, since e may be its owner's.
func concealed(e *Event, secrets *redact.Set) *Event {
	clean := *e
	secrets.Strings(&clean.Name, &clean.Path, &clean.Args, &clean.Result, &clean.Err, &clean.Text, &clean.Intent)
	if e.Exit != nil {
		exit := secrets.Exit(*e.Exit)
		clean.Exit = &exit
	}
	return &clean
}
