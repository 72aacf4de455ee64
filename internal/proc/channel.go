package proc

import (
	"os"
	"slices"
	"strconv"
	"syscall"

	"rnix/runtime/env"
	"rnix/types"
)

// ChannelFD is the descriptor under which a child that works for a process finds its channel to the daemon. Shells keep their own from 10 on
// and from 255 downwards. Below it is a gap, at which libuv (Node) stops when it marks what a program has inherited as not to be inherited.
const ChannelFD = 200

// Channels gives each child that works for a process, of the kinds shell, mcp and harness, a channel to the daemon. A child finds its end as
// ChannelFD, and that number and the data directory in env.ChannelVar. Where the limit of open files (ulimit -Hn) leaves no such descriptor, a
// child has no channel, and the log says so. The zero value gives none.
type Channels struct {
	DataDir string // the daemon's, absolute
	// Open makes the channel of a child of a process. It returns the child's end, which Start closes, and what is called when the child and all
	// that it has started have ended, or when it could not be started. When Open fails, Start does.
	Open func(owner types.PID) (child *os.File, end func(), err error)
}

// openChannel makes the channel of a child if it is to have one.
func (c *Child) openChannel() error {
	of, kind := c.manager.Channels, c.spec.Kind
	if c.spec.Road != "" {
		c.channel.road = c.spec.Road + ":" + of.DataDir
	}
	if of.Open == nil || c.spec.Owner == 0 || kind == KindGit || kind == KindLLM { // these do nothing for it by themselves
		return nil
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil && limit.Cur <= ChannelFD {
		c.manager.log.Warn("a child has no channel to the daemon: the limit of open files is too low; raise it with ulimit -Hn", "limit", limit.Cur, "want", ChannelFD+1)
		return nil
	}
	var err error
	c.channel.file, c.channel.end, err = of.Open(c.spec.Owner)
	if err == nil {
		c.channel.value = strconv.Itoa(ChannelFD) + ":" + of.DataDir
	}
	return err
}

// channel is what a child has of its channel; the zero value is none.
type channel struct {
	file  *os.File // the child's end, until it has been started
	end   func()
	value string // of the variable
	road  string // of the variable of the road; empty = there is none
}

// given lets go of the child's end, which the child has.
func (c *channel) given() {
	if c.file != nil {
		_ = c.file.Close() // nothing was written
		c.file = nil
	}
}

// close ends the channel.
func (c *channel) close() {
	c.given()
	if c.end != nil {
		c.end()
	}
}

// environ adds the variables to an environment.
func (c *channel) environ(vars []string) []string {
	if c.value != "" {
		vars = append(vars, env.ChannelVar+"="+c.value)
	}
	if c.road != "" {
		vars = append(vars, env.RoadVar+"="+c.road)
	}
	return vars
}

// files adds the child's end to its descriptors. Those between are closed in the child.
func (c *channel) files(list []*os.File) []*os.File {
	if c.file == nil {
		return list
	}
	list = slices.Grow(list, ChannelFD+1-len(list))
	for len(list) < ChannelFD {
		list = append(list, nil)
	}
	return append(list, c.file)
}
