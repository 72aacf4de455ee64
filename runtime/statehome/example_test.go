package statehome_test

import (
	"fmt"
	"log"
	"os"

	"rnix/runtime/statehome"
)

func Example() {
	home, err := statehome.NewHome("acme", "/srv/acme", os.LookupEnv)
	if err != nil {
		log.Fatal(err)
	}
	dir, err := home.StateDir("worktrees/s-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dir)
	fmt.Println(home.LogPath())
	// Output:
	// /srv/acme/.acme/worktrees/s-1
	// /srv/acme/.local/state/acme/log/daemon.log
}
