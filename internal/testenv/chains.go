package testenv

import (
	"os"

	"rnix/internal/store"
	"rnix/internal/store/chains"
)

// ChainsEnv is the variable that has the daemons of all systems commit to memory first and to their files then, as if they shared their
// histories with other nodes; see package chains. Systems inherit it.
const ChainsEnv = "RNIX_TESTENV_CHAINS"

// overChains returns what a daemon works with in place of its files; nil = nothing.
func overChains() func(store.Opened) store.Opened {
	if os.Getenv(ChainsEnv) == "" {
		return nil
	}
	return func(files store.Opened) store.Opened { return chains.New().Node("this node", files) }
}
