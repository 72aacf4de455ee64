package ash

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// loadsCode reports whether a variable makes programs that are started load code from elsewhere. The
// check is to keep accidents and simple tricks out; it is no boundary, since what the shell starts runs
// with the rights of who has started the shell.
func loadsCode(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || strings.HasPrefix(name, "BASH_FUNC_") ||
		slices.Contains([]string{"BASH_ENV", "ENV", "GCONV_PATH", "GLIBC_TUNABLES", "HOSTALIASES", "LOCPATH", "NLSPATH", "RESOLV_HOST_CONF"}, name)
}

// environment returns what a program sees of the variables: those that are exported, without our own,
// and with the variables that load code as they were when the shell was started.
func environment(vars expand.Environ, started []string) []string {
	var out []string
	for name, v := range vars.Each {
		if v.Exported && v.IsSet() && v.Kind == expand.String && !strings.HasPrefix(name, ownPrefix) && !loadsCode(name) {
			out = append(out, name+"="+v.String())
		}
	}
	for _, kv := range started {
		if name, _, _ := strings.Cut(kv, "="); loadsCode(name) {
			out = append(out, kv)
		}
	}
	return out
}
