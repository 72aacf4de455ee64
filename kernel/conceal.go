package kernel

import (
	"maps"
	"slices"

	"rnix/internal/redact"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Secrets are taken out where they come in, so that what a model is told, what is on record and what people are shown say the same:
// here what a person has given, in read and write what devices say. The conversations, the event log and the store look again.

// conceal takes the secrets out of what a process is started with.
func (k *KernelImpl) conceal(intent string, opts *SpawnOpts) string {
	if k.cfg.Secrets.Empty() {
		return intent
	}
	opts.SystemPrompt = k.cfg.Secrets.String(opts.SystemPrompt)
	opts.Labels = opts.Labels.Each(k.cfg.Secrets.String)
	opts.Inputs = slices.Clone(opts.Inputs)
	for i := range opts.Inputs {
		opts.Inputs[i].Text = k.cfg.Secrets.String(opts.Inputs[i].Text)
	}
	return k.cfg.Secrets.String(intent)
}

// noSecretIn refuses a new process of which something has a secret in it that cannot be taken out, since others find the process or a
// device by it: it would stand in every list.
func noSecretIn(secrets *redact.Set, opts *SpawnOpts) error {
	if opts.From != nil || opts.Recorded || secrets.Empty() {
		return nil
	}
	texts := append(slices.Concat([]string{opts.Name}, opts.AllowedDevices, opts.DeniedDevices), slices.Collect(maps.Keys(opts.Labels))...)
	for _, text := range texts {
		if shown := secrets.String(text); shown != text {
			return types.Errorf(types.ErrInvalid, "Spawn", shown, "a secret is in a name, a label or a path of a device, which everybody sees; choose another one")
		}
	}
	return nil
}

// concealEnd takes the secrets out of how a process ended.
func (v *engine) concealEnd(exit types.ExitStatus, end *loop.End) types.ExitStatus {
	end.Result, end.Wait.SuspendReason = v.secrets.String(end.Result), v.secrets.String(end.Wait.SuspendReason)
	return v.secrets.Exit(exit)
}

// conceal takes the secrets out of what a device says. The answer of a model is JSON, and stays so.
func (c *descriptors) conceal(p *Process, path string, data []byte, err error) ([]byte, error) {
	if path == p.modelPath {
		data = c.secrets.JSON(data)
	} else {
		data = c.secrets.Bytes(data)
	}
	return data, c.secrets.Error(err)
}
