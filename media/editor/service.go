package editor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Service is what can be done with timelines.
type Service struct {
	Assets assets.Service // whose database, ffmpeg, queues and clock this uses
}

// Create checks a timeline and queues its render. It fails with invalid_request and
// every fault of the timeline by its place, with BILLING_002 when the storage has no room
// for the video, and with TRANSCODE_001 when the queue is full.
func (v Service) Create(ctx context.Context, o owner.Owner, in Input) (Render, error) {
	p, err := v.plan(ctx, o, in)
	if err != nil {
		return Render{}, err
	}
	if err := v.Assets.CheckRoom(ctx, o, v.most(o.Plan, p)+p.images); err != nil {
		return Render{}, err
	}
	request, err := json.Marshal(in)
	if err != nil {
		return Render{}, err
	}
	now := v.Assets.Clock()
	r := Render{ID: ident.New("rndr"), Owner: o.ID, Account: o.Account, Plan: o.Plan, Title: strings.TrimSpace(in.Title), Metadata: in.Metadata,
		Status: Queued, Request: request, DurationMS: p.length().Milliseconds(), Width: p.width, Height: p.height, ImageBytes: p.images, CreatedAt: now, UpdatedAt: now}
	if r.Title == "" {
		r.Title = "Render"
	}
	if r.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	return r, postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		if err := v.Assets.QueueTx(ctx, tx, o.ID, waiting); err != nil {
			return err
		}
		if err := v.Assets.HoldRoomTx(ctx, tx, o, p.images); err != nil {
			return err
		}
		if err := insert(ctx, tx, r); err != nil {
			return err
		}
		if _, err := v.Assets.Jobs.InsertTx(ctx, tx, RenderArgs{RenderID: r.ID, Seconds: int(attempt(p).Seconds())}, nil); err != nil {
			return fmt.Errorf("enqueue render: %w", err)
		}
		return nil
	})
}

// most is how many bytes the video of p may have: what its bitrate allows, or the plan.
func (v Service) most(plan string, p plan) int64 {
	most := p.largest()
	if limit := v.Assets.FileLimit(plan); limit > 0 {
		most = min(most, limit)
	}
	return most
}

// plan checks a timeline of o's films as they are now.
func (v Service) plan(ctx context.Context, o owner.Owner, in Input) (plan, error) {
	known, err := v.sources(ctx, o, in.Timeline)
	if err != nil {
		return plan{}, err
	}
	return check(in, func(id string) found {
		f, ok := known[id]
		if !ok {
			f.problem = "names nothing of yours"
		}
		return f
	})
}

// sources reads the assets that a timeline names, in one query.
func (v Service) sources(ctx context.Context, o owner.Owner, t Timeline) (map[string]found, error) {
	var ids []string
	for _, c := range t.Clips[:min(len(t.Clips), maxClips)] {
		ids = append(ids, c.AssetID.v)
	}
	for _, s := range t.Audio[:min(len(t.Audio), maxSounds)] {
		ids = append(ids, s.AssetID.v)
	}
	list, err := assets.FindAll(ctx, v.Assets.DB, o.ID, ids)
	known := map[string]found{}
	for _, a := range list {
		f := found{Source: Source{AssetID: a.ID, Owner: a.Owner, FileID: a.FileID, Size: a.FileSize, From: a.Part(), Length: float64(a.DurationMS) / 1000,
			Width: a.Width, Height: a.Height, Sound: a.AudioCodec != ""}}
		if a.Status != assets.Ready {
			f.problem = "names an asset that is " + string(a.Status)
		}
		known[a.ID] = f
	}
	return known, err
}

// Cancel ends a render that is under way. One that is cancelled already stays so; others
// that have ended are a conflict.
func (v Service) Cancel(ctx context.Context, o owner.Owner, id string) (r Render, err error) {
	err = postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		if r, err = one(ctx, tx, `owner = $1 AND id = $2 FOR UPDATE`, o.ID, id); err != nil || r.Status == Cancelled {
			return err
		}
		if r.ended() {
			return apierror.Errorf(decision.Conflict, "The render is %s already.", r.Status)
		}
		r.Status, r.Holder, r.UpdatedAt = Cancelled, "", v.Assets.Clock()
		return save(ctx, tx, r)
	})
	return r, err
}

// Delete forgets a render that has ended, which frees what its images take. Others are a
// conflict.
func (v Service) Delete(ctx context.Context, o owner.Owner, id string) error {
	return postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		r, err := one(ctx, tx, `owner = $1 AND id = $2 FOR UPDATE`, o.ID, id)
		if err != nil {
			return err
		}
		if !r.ended() {
			return apierror.Errorf(decision.Conflict, "The render is %s: cancel it first.", r.Status)
		}
		return remove(ctx, tx, id)
	})
}

// keptFor is how long renders are kept after they have ended.
const keptFor = "30 days"

// Tend fails renders whose job is gone, as it is when workers were killed in each of its
// attempts, and drops those that ended long ago. It returns how many.
func (v Service) Tend(ctx context.Context) (int64, error) {
	now := v.Assets.Clock()
	lost, err := v.Assets.DB.Exec(ctx, `UPDATE media_renders r SET status = 'failed', error_code = $1, error_message = $2, updated_at = $3
		WHERE status IN ('queued', 'rendering') AND NOT EXISTS (SELECT FROM river_job j WHERE j.kind = $4 AND j.args->>'render_id' = r.id
			AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`,
		decision.Internal, "The render was interrupted too often.", now, RenderArgs{}.Kind())
	if err != nil {
		return 0, fmt.Errorf("fail lost renders: %w", err)
	}
	old, err := v.Assets.DB.Exec(ctx, `DELETE FROM media_renders WHERE status IN ('ready', 'failed', 'cancelled') AND updated_at < $1::timestamptz - $2::interval`, now, keptFor)
	if err != nil {
		return 0, fmt.Errorf("drop old renders: %w", err)
	}
	return lost.RowsAffected() + old.RowsAffected(), nil
}
