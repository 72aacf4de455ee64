package agent

import (
	"fmt"

	"rnix/internal/permit"
	"rnix/internal/yamlfile"
)

// checkPermissions reports rules that cannot be read.
func (m *Manifest) checkPermissions(d *yamlfile.Doc) {
	for key, list := range map[string][]string{"ask": m.Permissions.Ask, "allow": m.Permissions.Allow, "deny": m.Permissions.Deny} {
		for i, text := range list {
			if _, err := permit.Parse(text); err != nil {
				d.Problemf(fmt.Sprintf("permissions.%s[%d]", key, i), "%v", permit.Reason(err))
			} else if why := permit.Doubt(text); why != "" {
				d.Warnf(fmt.Sprintf("permissions.%s[%d]", key, i), "%q: %s", text, why)
			}
		}
	}
}
