package assets

import (
	"context"
	"fmt"
	"os"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
)

// maxFrame is the width of a frame, in pixels.
const maxFrame = 1920

// Frame makes a PNG of the picture at a place in an asset of o's, in seconds, and hands
// it to use. It fails with not_found for what is not o's, conflict for what is not ready,
// and invalid_request for a place beyond the end.
func (v Service) Frame(ctx context.Context, o owner.Owner, id string, at float64, use func(*os.File) error) error {
	a, err := v.Any(ctx, o.ID, id)
	if err != nil {
		return err
	}
	if a.Status != Ready {
		return apierror.Errorf(decision.Conflict, "The asset is not ready.")
	}
	if length := seconds(a.DurationMS); length > 0 && at >= length {
		return apierror.Invalid([]decision.Detail{{Field: "times", Issue: "has one that lies beyond the end", Expected: fmt.Sprintf("less than %.3f", length)}})
	}
	if a.Kind == Clip && !a.Cut { // its place in a file that it shares
		at += seconds(a.StartMS)
	}
	leave, err := ffmpeg.Enter(ctx, v.Converting, o.ID)
	if err != nil {
		return err
	}
	defer leave()
	return v.picture(ctx, a, at, min(a.Width, maxFrame), "png", use)
}
