package launch

import (
	"fmt"

	"rnix/agent"
	"rnix/internal/config"
	"rnix/internal/harness"
	"rnix/internal/media"
	"rnix/ipc"
	"rnix/types"
)

// Takes refuses what a person attaches for an agent CLI that takes no such files.
func Takes(syscall string, p *config.Provider, as []ipc.Attachment) error {
	if len(as) == 0 || p.Harness() == "" {
		return nil
	}
	cli, err := harness.Lookup(p.Harness())
	if err != nil {
		return nil // it cannot be started, and its driver says so
	}
	can := cli.Can()
	for i := range as {
		in, err := media.Check(as[i].Data)
		if err != nil {
			continue // it is refused for every model
		}
		if why := can.Refuses(cli.Name(), &agent.Attachment{Media: in.Type}); why != "" {
			return types.Errorf(types.ErrInvalid, syscall, p.Name, "cannot show it %s: %s; name the file in the text instead, and the agent reads it", fmt.Sprintf("%q", as[i].Name), why)
		}
	}
	return nil
}

// unshown warns of attachments that a process gets and its model is not shown: that of a CLI which is asked in words alone.
func unshown(choice *config.Choice, as []ipc.Attachment) []string {
	p := choice.Provider
	if len(as) == 0 || p.Program() == "" {
		return nil
	}
	return []string{p.Name + " is asked in words alone: it is told the names of the attached files, and is not shown them"}
}
