package assets

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/media/playback/signing"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// eventTTL is how long the URLs in an event hold: its last retry comes after
// more than two hours.
const eventTTL = 24 * time.Hour

// bounds are those of a file of owner that is size bytes long; negative: not known.
func bounds(owner string, l plans.Limits, size int64) files.Spec {
	return files.Spec{Owner: owner, Size: size, Limit: l.FileBytes, Quota: l.StorageBytes}
}

// store keeps src as a file and reads what it says of itself. It fails as
// files.Write does, and with STORAGE_002 when it is no video file that we know;
// nothing is kept then.
func (v Service) store(ctx context.Context, s files.Spec, src io.Reader) (Stored, error) {
	id, size, err := files.Write(ctx, v.DB, s, mp4.Begin(src), now(v.Now))
	if err != nil {
		return Stored{}, notAccepted(err)
	}
	info, err := v.probe(ctx, s.Owner, id)
	if err != nil {
		drop := postgres.InTx(context.WithoutCancel(ctx), v.DB, func(tx pgx.Tx) error { return files.RemoveTx(ctx, tx, id) })
		return Stored{}, errors.Join(err, drop)
	}
	return Stored{FileID: id, Size: size, Info: info}, nil
}

// probe reads what a stored file says of itself. What is wrong with the file is
// STORAGE_002; what is wrong with the database is not, and may be tried again.
func (v Service) probe(ctx context.Context, owner, id string) (mp4.Info, error) {
	r, err := files.Open(ctx, v.DB, id)
	if err != nil {
		return mp4.Info{}, err
	}
	info, err := v.Probe.Look(ctx, owner, r, r.Size())
	return info, notAccepted(err)
}

// notAccepted is err, as STORAGE_002 when it is one of mp4's.
func notAccepted(err error) error {
	for _, known := range []error{mp4.ErrNotMP4, mp4.ErrNoMovie, mp4.ErrDamaged} {
		if errors.Is(err, known) {
			return &apierror.Error{Code: decision.Storage002, Message: "The file is not accepted: " + known.Error() + ".", Cause: err}
		}
	}
	return err
}

// finish writes an asset that is ready or failed, updates the clips and renditions
// that wait for it, and emits its events.
func (v Service) finish(ctx context.Context, tx pgx.Tx, a Asset, l plans.Limits) error {
	a.UpdatedAt = now(v.Now)
	if err := save(ctx, tx, a); err != nil {
		return err
	}
	if a.uncut() {
		return v.enqueueCut(ctx, tx, a)
	}
	if err := v.announce(ctx, tx, a); err != nil {
		return err
	}
	if err := v.updateClips(ctx, tx, a); err != nil {
		return err
	}
	if err := v.startRenditions(ctx, tx, a); err != nil {
		return err
	}
	return v.warn(ctx, tx, a, l)
}

// updateClips has the clips that wait for source cut from it, or fails them.
func (v Service) updateClips(ctx context.Context, tx pgx.Tx, source Asset) error {
	clips, err := waitingClips(ctx, tx, source.ID)
	if err != nil {
		return err
	}
	for _, c := range clips {
		c.UpdateFrom(source)
		c.UpdatedAt = now(v.Now)
		if err := save(ctx, tx, c); err != nil {
			return err
		}
		if !c.uncut() { // it has failed
			continue
		}
		if err := v.enqueueCut(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

// announce emits the events of an asset that has just become what it is.
func (v Service) announce(ctx context.Context, tx pgx.Tx, a Asset) error {
	if a.Status == Failed && a.Kind == Recording {
		return v.emit(ctx, tx, a, "recording.failed", map[string]any{
			"error_code": a.ErrorCode, "error_message": a.ErrorMessage, "retry_available": a.RetryUntil != nil})
	}
	if a.Status != Ready || a.Account == "" {
		return nil
	}
	key, err := v.Keys.Key(ctx)
	if err != nil {
		return err
	}
	length, link := a.DurationMS/1000, v.link(a, key, eventTTL)
	switch a.Kind {
	case VOD:
		return v.emit(ctx, tx, a, "vod.ready", map[string]any{"vod_id": a.ID, "title": a.Title, "duration": length, "playback_url": link})
	case Clip:
		return v.emit(ctx, tx, a, "clip.created", map[string]any{"clip_id": a.ID, "title": a.Title, "duration": seconds(a.DurationMS)})
	default:
		done := map[string]any{"duration": length, "file_size": a.FileSize, "format": a.Format, "resolution": a.Resolution(), "download_url": link}
		if err := v.emit(ctx, tx, a, "recording.completed", done); err != nil {
			return err
		}
		return v.emit(ctx, tx, a, "recording.ready", map[string]any{"duration": length, "playback_url": link})
	}
}

// warn tells the account of the shares of its storage that it has filled. Files that arrive
// at the same moment may be counted in either order; the last one is counted with all.
func (v Service) warn(ctx context.Context, tx pgx.Tx, a Asset, l plans.Limits) error {
	if l.StorageBytes == 0 || a.Status != Ready || a.Account == "" {
		return nil
	}
	used, err := files.Used(ctx, tx, a.Owner)
	if err != nil {
		return err
	}
	u := events.Usage{Account: a.Account, Resource: "storage", Used: used, Quota: l.StorageBytes}
	_, err = u.Month(now(v.Now)).WarnTx(ctx, tx, v.Events, now(v.Now))
	return err
}

// emit tells the account. A paying agent has none.
func (v Service) emit(ctx context.Context, tx pgx.Tx, a Asset, kind string, data map[string]any) error {
	if a.Account == "" {
		return nil
	}
	e := events.Event{Account: a.Account, Type: kind, StreamID: a.StreamID, Time: now(v.Now), Data: data}
	if a.Kind == Recording {
		e.RecordingID = a.ID
	}
	if a.Status == Failed {
		e.ErrorCode = string(a.ErrorCode)
	}
	return v.Events.EmitTx(ctx, tx, e)
}

// link is a signed address of a's bytes that holds for ttl. That of a clip which shares
// its source's ends with its place in them, as W3C Media Fragments writes it: players
// start and stop there.
func (v Service) link(a Asset, key []byte, ttl time.Duration) string {
	return v.address(a.ID, key, ttl) + a.Fragment()
}

// Beside is a signed address of what is served beside the bytes of an asset, such as
// captions/en.vtt, for six hours.
func (v Service) Beside(ctx context.Context, id, name string) (string, error) {
	key, err := v.Keys.Key(ctx)
	if err != nil {
		return "", err
	}
	return strings.Replace(v.address(id, key, linkTTL), "?", "/"+name+"?", 1), nil
}

// address is a signed address of the bytes of an asset or a rendition.
func (v Service) address(id string, key []byte, ttl time.Duration) string {
	token, err := signing.Sign(key, signing.Grant{Use: signing.Download, Subject: id, Expires: now(v.Now).Add(ttl)})
	if err != nil {
		return ""
	}
	return v.Playback + "/files/" + id + "?token=" + token
}
