package schedules

import (
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules/definition"
)

// maxPreview is the most runs that one preview shows.
const maxPreview = 100

// previewRequest is the body of POST /v1/events/schedules/preview. The timing
// may stand in schedule, or at the top.
type previewRequest struct {
	Schedule *definition.Timing `json:"schedule"`
	Type     string             `json:"type"`
	Cron     string             `json:"cron"`
	Timezone string             `json:"timezone"`
	From     *time.Time         `json:"from"` // default: now
	Count    *int               `json:"count"`
}

// BodyLimit makes a previewRequest httpapi.Limited.
func (previewRequest) BodyLimit() int64 { return bodyLimit }

// timing returns the timing asked for: the schedule object, or a cron
// expression alone.
func (p previewRequest) timing() definition.Timing {
	t := definition.Timing{Type: p.Type, Cron: p.Cron, Timezone: p.Timezone}
	if p.Schedule != nil {
		t = *p.Schedule
	}
	if t.Type == "" {
		t.Type = definition.Recurring
	}
	if t.Timezone == "" {
		t.Timezone = "UTC"
	}
	return t
}

// runs computes the preview. It fails with invalid_request, naming every bad
// field.
func (p previewRequest) runs(now time.Time) ([]time.Time, error) {
	count := 5
	if p.Count != nil {
		count = *p.Count
	}
	if count < 1 || count > maxPreview {
		return nil, apierror.Invalid([]decision.Detail{{Field: "count", Issue: "is out of range", Expected: "1–100"}})
	}
	plan, err := p.timing().Plan()
	if err != nil {
		return nil, err
	}
	from := now
	if p.From != nil {
		from = *p.From
	}
	runs := []time.Time{}
	for len(runs) < count {
		next, ok := plan.Next(from)
		if !ok {
			break
		}
		runs = append(runs, next)
		from = next
	}
	return runs, nil
}

// previewed is the answer to a preview.
type previewed struct {
	NextExecutions []time.Time `json:"nextExecutions"`
	Timezone       string      `json:"timezone"`
}

// preview answers with the next runs of a timing that need not be stored.
func (h handlers) preview(_ *http.Request, in previewRequest) (previewed, error) {
	runs, err := in.runs(h.now())
	return previewed{runs, in.timing().Timezone}, err
}
