package mcpserve

import (
	"context"
	"io"

	"rnix/ipc"
	"rnix/types"
)

// maxQuestion is the longest question about a call, in bytes: what the daemon takes, as it is sent.
const maxQuestion = ipc.MaxBody / 2

// Judge asks the daemon that a file names about a call of the session there, and writes the answer to out: once it is there, which may take days. It starts
// no daemon. The question is read from in to its end. An error means that the call must not be made.
func Judge(ctx context.Context, file string, in io.Reader, out io.Writer) error {
	question, err := io.ReadAll(io.LimitReader(in, maxQuestion+1))
	switch {
	case err != nil:
		return types.Errorf(types.ErrDriver, "Judge", "", "the call cannot be read: %w", err)
	case len(question) > maxQuestion:
		return types.Errorf(types.ErrInvalid, "Judge", "", "the call is longer than %d MiB, so rules cannot decide about it", maxQuestion>>20)
	}
	f, err := readSessionFile(file)
	if err != nil {
		return err
	}
	client := ipc.NewClient(ipc.Nearest(f.Socket, f.Road))
	defer client.Close()
	r, err := ipc.Call(ctx, client, ipc.SessionJudge, ipc.SessionJudgeRequest{Credential: f.Credential, Question: question})
	if err == nil {
		_, err = out.Write(r.Answer)
	}
	return err
}
