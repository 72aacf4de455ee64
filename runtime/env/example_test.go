package env_test

import (
	"fmt"

	"rnix/agent"
	"rnix/runtime/env"
)

func Example() {
	host := map[string]string{"PATH": "/usr/bin", "ANTHROPIC_API_KEY": "sk-of-the-host", "RNIX_SESSION_TOKEN": "t"}
	session := agent.Spec{Env: map[string]string{"RNIX_SESSION_ID": "s-1"}}
	for _, kv := range env.NewComposer().Compose(host, session) { // exec.Cmd.Env, as it is
		fmt.Println(kv)
	}
	// Output:
	// PATH=/usr/bin
	// RNIX_SESSION_ID=s-1
}
