package assets

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/files/probe"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/media/playback/views"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/platform/limits/refusals"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres"
)

// queueRetry is what Retry-After says when the processing queue is full, in
// seconds (contract 5.6: 30 to 60 s).
const queueRetry = 30

// Service is what can be done with assets. Every field is required.
type Service struct {
	DB         postgres.DB
	Events     events.Emitter
	Plans      plans.Source
	Keys       *signing.Keys
	Client     *outbound.Client      // checks source URLs before they are accepted
	Jobs       *river.Client[pgx.Tx] // only InsertTx is called
	Playback   string                // public address of /v1/playback, without a trailing slash
	QueueLimit int                   // sources waiting to be fetched, and renditions to be made, of all owners; beyond: TRANSCODE_001
	OwnerLimit int                   // the same of one owner
	Fetches    *fairshare.Pool       // of the workers that fetch sources, by owner
	Turns      *Turns                // of the owners of renditions
	Cuts       *fairshare.Pool       // of the workers that cut clips, by owner
	Views      views.Counter         // counts who begins to watch a file
	Probe      probe.Prober          // looks into files
	FFmpeg     ffmpeg.Tool           // makes renditions and stills; its zero value: none
	Films      *ffmpeg.Films         // of which stills are made
	CutFilms   *Cuts                 // how films are played by DASH
	Converting *fairshare.Pool       // of the conversions that callers wait for, by owner
	Refused    *refusals.Memory      // whose sources and uploads were refused a moment ago, by owner
	Now        func() time.Time
}

// CreateVOD stores a video that a job will fetch from its source. It fails with
// BILLING_002 when the owner's storage is used up and with TRANSCODE_001 when
// the queue is full.
func (v Service) CreateVOD(ctx context.Context, o owner.Owner, in Input) (Asset, error) {
	a, err := v.Admit(ctx, o, in)
	if err != nil {
		return Asset{}, err
	}
	return a, postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if err := v.EnqueueTx(ctx, tx, o, a); err != nil || in.original() {
			return err
		}
		return v.insertRendition(ctx, tx, v.newRendition(o, a.ID, in.Profile))
	})
}

// Admit checks what CreateVOD checks, but for the queue, and returns the asset
// that EnqueueTx stores.
func (v Service) Admit(ctx context.Context, o owner.Owner, in Input) (Asset, error) {
	a, err := in.asset()
	if err == nil && !in.original() && !v.FFmpeg.Available() {
		err = noTranscoder()
	}
	if err == nil {
		err = v.admit(ctx, o, &a)
	}
	return a, err
}

// CreateClip stores a clip, which a job cuts once its source is ready or, for a
// source_url, fetched. It fails with not_implemented where there is no ffmpeg, with
// invalid_request when the source is not there, with conflict when a stream has no
// recording or the source has failed, and with TRANSCODE_001 when the queue is full.
func (v Service) CreateClip(ctx context.Context, o owner.Owner, in ClipInput) (Asset, error) {
	a, err := in.asset()
	if err == nil && !v.FFmpeg.Available() {
		err = noTranscoder()
	}
	if err != nil {
		return Asset{}, err
	}
	if a.SourceURL != "" {
		if err := v.admit(ctx, o, &a); err != nil {
			return Asset{}, err
		}
		return a, v.enqueue(ctx, o, a)
	}
	if err := v.checkStorage(ctx, o); err != nil {
		return Asset{}, err
	}
	v.initialize(&a, o)
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if l, err := countCuts(ctx, tx, a.Owner); err != nil {
			return err
		} else if err := v.full(l); err != nil {
			return err
		}
		source, err := in.source(ctx, tx, o)
		if err != nil {
			return err
		}
		a.SourceID = source.ID
		a.UpdateFrom(source)
		if a.Status == Failed {
			return refused(source, a)
		}
		if err := save(ctx, tx, a); err != nil || !a.uncut() {
			return err
		}
		return v.enqueueCut(ctx, tx, a)
	})
	return a, err
}

// refused is why clip a cannot be cut from source.
func refused(source, a Asset) error {
	if source.Status == Failed {
		return apierror.Errorf(decision.Conflict, "%s", a.ErrorMessage)
	}
	return apierror.Invalid([]decision.Detail{{Field: "end", Issue: "lies beyond the end of the source", Expected: strconv.FormatFloat(seconds(source.DurationMS), 'f', -1, 64) + " at most"}})
}

// source finds and locks the asset that a clip is cut from, so that it cannot
// become ready unseen.
func (in ClipInput) source(ctx context.Context, tx pgx.Tx, o owner.Owner) (Asset, error) {
	var a Asset
	var err error
	field := "vod_id"
	switch {
	case in.VODID != "":
		a, err = one(ctx, tx, `owner = $1 AND kind = 'vod' AND id = $2 FOR UPDATE`, o.ID, in.VODID)
	case in.RecordingID != "":
		field = "recording_id"
		a, err = one(ctx, tx, `owner = $1 AND kind = 'recording' AND id = $2 FOR UPDATE`, o.ID, in.RecordingID)
	default:
		a, err = one(ctx, tx, `owner = $1 AND kind = 'recording' AND stream_id = $2 ORDER BY created_at DESC, id DESC LIMIT 1 FOR UPDATE`, o.ID, in.StreamID)
		if apierror.Code(err) == decision.NotFound {
			return a, apierror.Errorf(decision.Conflict, "There is no recording of that stream to cut a clip from.")
		}
	}
	if apierror.Code(err) == decision.NotFound {
		return a, apierror.Invalid([]decision.Detail{{Field: field, Issue: "names nothing of yours"}})
	}
	return a, err
}

// refusedFor is how long an owner whose queue is full is refused from memory.
const refusedFor = time.Second

// admit checks a source before it is accepted, and makes a the owner's.
func (v Service) admit(ctx context.Context, o owner.Owner, a *Asset) error {
	if err := v.Refused.Last("queue "+o.ID, v.Now()); err != nil {
		return err
	}
	if err := v.Client.CheckURL(ctx, a.SourceURL); err != nil {
		return apierror.Invalid([]decision.Detail{outbound.Detail("source_url", err)})
	}
	if err := v.checkStorage(ctx, o); err != nil {
		return err
	}
	v.initialize(a, o)
	return nil
}

// enqueue is EnqueueTx in a transaction of its own.
func (v Service) enqueue(ctx context.Context, o owner.Owner, a Asset) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error { return v.EnqueueTx(ctx, tx, o, a) })
}

// EnqueueTx stores an asset of Admit and the job that fetches its source. It fails
// with TRANSCODE_001 when the queue is full.
func (v Service) EnqueueTx(ctx context.Context, tx pgx.Tx, o owner.Owner, a Asset) error {
	l, err := countProcessing(ctx, tx, a.Owner)
	if err == nil {
		if err = v.full(l); err != nil {
			v.Refused.Keep("queue "+a.Owner, err, v.Now(), v.Now().Add(refusedFor))
		}
	}
	if err != nil {
		return err
	}
	if err := save(ctx, tx, a); err != nil {
		return err
	}
	if _, err := v.Jobs.InsertTx(ctx, tx, FetchArgs{AssetID: a.ID, Plan: o.Plan}, nil); err != nil {
		return fmt.Errorf("enqueue fetch: %w", err)
	}
	return nil
}

// Bounds of the uploads of one owner.
const (
	maxOpen     = 8           // under way
	maxNoVideos = 10          // that turn out to be no video, within
	noVideosFor = time.Minute // from the first of them on
)

// Upload stores a video whose bytes, size of them, come with the request; negative:
// their number is not known. It fails with STORAGE_001 when they are too many, with
// STORAGE_002 when they are no video that we know, with BILLING_002 when the owner's
// storage has no room for them, and with rate_limit_exceeded when the owner has too
// many uploads under way, or has sent too much that is no video.
func (v Service) Upload(ctx context.Context, o owner.Owner, name string, body io.Reader, size int64) (Asset, error) {
	if err := v.Refused.Last("upload "+o.ID, v.Now()); err != nil {
		return Asset{}, err
	}
	a := Asset{Kind: VOD, Status: Processing, Title: title(name, ""), Metadata: map[string]string{}}
	v.initialize(&a, o)
	limits := v.Plans.Of(o.Plan)
	spec := bounds(o.ID, limits, size)
	spec.Open = maxOpen
	stored, err := v.store(ctx, spec, body)
	if apierror.Code(err) == decision.Storage002 {
		v.Refused.Count("upload "+o.ID, &apierror.Error{Code: decision.RateLimited, RetryAfter: int(noVideosFor.Seconds()),
			Message: fmt.Sprintf("%d of your uploads within %v were no video.", maxNoVideos, noVideosFor)}, maxNoVideos, v.Now(), v.Now().Add(noVideosFor))
	}
	if err != nil {
		return Asset{}, err
	}
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		a.Complete(stored)
		return v.finish(ctx, tx, a, limits)
	})
	return a, err
}

// checkStorage fails with BILLING_002 when the storage of o is full. How much a file
// needs is seen when it is stored.
func (v Service) checkStorage(ctx context.Context, o owner.Owner) error {
	l := v.Plans.Of(o.Plan)
	if l.StorageBytes == 0 {
		return nil
	}
	taken, err := files.Taken(ctx, v.DB, o.ID)
	if err == nil && taken >= l.StorageBytes {
		err = apierror.Errorf(decision.QuotaUsed, "The plan's storage of %d bytes is used up.", l.StorageBytes)
	}
	return err
}

// initialize gives a new asset its id, its owner and its time.
func (v Service) initialize(a *Asset, o owner.Owner) {
	a.ID, a.Owner, a.Account, a.Plan = ident.New(a.Kind.Prefix()), o.ID, o.Account, o.Plan
	a.CreatedAt = now(v.Now)
	a.UpdatedAt = a.CreatedAt
}

// Get returns one asset of this kind, or not_found.
func (v Service) Get(ctx context.Context, o owner.Owner, kind Kind, id string) (Asset, error) {
	return get(ctx, v.DB, o.ID, kind, id)
}

// List returns one page of assets, newest first.
func (v Service) List(ctx context.Context, o owner.Owner, f Filter) (paging.List[View], error) {
	found, err := list(ctx, v.DB, o.ID, f)
	if err != nil {
		return paging.List[View]{}, err
	}
	key, err := v.Keys.Key(ctx)
	if err != nil {
		return paging.List[View]{}, err
	}
	return paging.Map(found, func(a Asset) View { return v.view(a, key) }), nil
}

// Delete removes an asset. Its bytes go with the last clip that has yet to be cut out of
// them, or shares them; a clip that waits for it to be ready fails.
func (v Service) Delete(ctx context.Context, o owner.Owner, kind Kind, id string) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		a, err := one(ctx, tx, `owner = $1 AND kind = $2 AND id = $3 FOR UPDATE`, o.ID, kind, id)
		if err != nil {
			return err
		}
		if a.Status == InRecording {
			return apierror.Errorf(decision.Conflict, "The recording is still being made. Stop its stream first.")
		}
		if a.Status == Processing {
			gone := a
			gone.Fail(decision.NotFound, "It was deleted.")
			if err := v.updateClips(ctx, tx, gone); err != nil {
				return err
			}
		}
		return release(ctx, tx, a)
	})
}

// Any returns an asset of owner's, of whichever kind, or not_found.
func (v Service) Any(ctx context.Context, owner, id string) (Asset, error) {
	return one(ctx, v.DB, `owner = $1 AND id = $2`, owner, id)
}
