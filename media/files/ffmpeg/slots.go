package ffmpeg

import (
	"context"
	"errors"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// retryAfter is what a full pool says, in seconds (contract 5.6: 30 to 60 s).
const retryAfter = 30

// TryEnter takes a place in p for the account, which the caller must leave. It fails
// with TRANSCODE_001 when there is none for it.
func TryEnter(p *fairshare.Pool, account string) (leave func(), err error) {
	leave, ok := p.TryEnter(account)
	if !ok {
		return nil, busy()
	}
	return leave, nil
}

// Enter waits for a place. It fails with TRANSCODE_001 when the account waits for too
// many already.
func Enter(ctx context.Context, p *fairshare.Pool, account string) (leave func(), err error) {
	leave, err = p.Enter(ctx, account)
	if errors.Is(err, fairshare.ErrBusy) {
		err = busy()
	}
	return leave, err
}

func busy() error { return &apierror.Error{Code: decision.Transcode001, RetryAfter: retryAfter} }
