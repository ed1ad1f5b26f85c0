package assets

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
)

// OpenRecording stores the recording of a session that has just ended, in
// processing, and returns its id. It suits streams.Service.Record.
func (v Service) OpenRecording(ctx context.Context, tx pgx.Tx, o owner.Owner, s streams.Stream, session streams.Session) (string, error) {
	a := Asset{Kind: Recording, Title: s.Title, Status: Processing, StreamID: s.ID, SessionID: session.ID, Metadata: map[string]string{}}
	v.initialize(&a, o)
	return a.ID, save(ctx, tx, a)
}

// Pending returns the recordings that wait for their bytes, oldest first.
func (v Service) Pending(ctx context.Context) ([]Asset, error) {
	return many(ctx, v.DB, `kind = 'recording' AND status = 'processing' ORDER BY created_at, id`)
}

// FinishRecording gives a recording its bytes, size of them, and emits
// recording.completed and recording.ready. Bytes that are no video, too many, or
// more than the owner's storage has room for end it as failed, with
// recording.failed; so does a nil src, which means that there are none. Wanted then
// says whether the bytes are to be kept for another try.
func (v Service) FinishRecording(ctx context.Context, a Asset, plan string, src io.Reader, size int64) error {
	limits := v.Plans.Of(plan)
	var stored Stored
	var err error = apierror.Errorf(decision.Storage002, "Nothing was recorded.")
	if src != nil {
		stored, err = v.store(ctx, bounds(a.Owner, limits, size), src)
	}
	if err != nil && !final(err) {
		return err
	}
	return v.end(ctx, a, limits, stored, err)
}
