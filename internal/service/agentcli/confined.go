package agentcli

import (
	"context"
	"encoding/json"
	"net"
	"strconv"

	"rnix/drivers/harness"
	"rnix/internal/kernelmcp"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"

	clis "rnix/internal/harness"
)

// Boxes says how agent CLIs are confined. *confine.Service is one.
type Boxes interface {
	CLI(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error)
}

// Roads opens roads of processes. *ipc.Channels does.
type Roads interface {
	Road(owner types.PID) (address string, end func(), err error)
	// Inside is a road in a box that has a network of its own, at a listener there.
	Inside(owner types.PID, at net.Listener)
}

// Confine says how an agent CLI is confined, and where it finds the models of its vendors if its requests are metered. One in the sandbox has a road to
// the kernel until it has ended: it cannot connect to the socket, and Bun and Python close the channel that they have inherited when they start a program.
func (d *Service) Confine(c vfs.Caller, cli clis.CLI, program, dir string, readOnly bool) (harness.Confined, error) {
	p, ok := d.process(c.PID)
	metered := ok && kernel.ModelOf(p).Metered
	box := cli
	if metered {
		box = clis.Gated(cli)
	}
	by, err := d.Boxes.CLI(c, box, program, dir, readOnly)
	if err != nil || by.Home == "" && !metered {
		return by, err
	}
	at, err := roadOf(d, &by, c.PID)
	if err == nil && by.Home != "" {
		by.Road = at
	}
	if err == nil && metered {
		var end func()
		if by.Gateway, end, err = d.gate(&c, cli, at); err == nil {
			by.Also(end)
		}
	}
	if err != nil {
		by.Over()
		return harness.Confined{}, err
	}
	return by, nil
}

// roadOf opens a road for an agent CLI that is confined in a way, until it has ended, and returns its address. In a network of its own it is there: what is on the
// loopback of this machine is out of its reach.
func roadOf(d *Service, by *harness.Confined, owner types.PID) (address string, err error) {
	if by.Home != "" && !by.Box.Plan.Network {
		by.Box.Inner = append(by.Box.Inner, proc.Inner{Port: sandbox.Road, Serve: func(l net.Listener) { d.Roads.Inside(owner, l) }})
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(sandbox.Road)), nil
	}
	address, end, err := d.Roads.Road(owner)
	if err == nil {
		by.Also(end)
	}
	return address, err
}

// sessionOf finds the session that a credential opens for a peer, and how its calls are run.
func (d *Service) sessionOf(peer *ipc.Peer, credential string) (ipc.SessionToolsResponse, kernelmcp.Run, error) {
	r, err := d.tools(context.Background(), peer, ipc.SessionToolsRequest{Credential: credential})
	return r, func(ctx context.Context, name string, input json.RawMessage) (ipc.SessionCallResponse, error) {
		return d.call(ctx, peer, ipc.SessionCallRequest{Credential: credential, Name: name, Input: input})
	}, err
}
