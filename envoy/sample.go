package envoy

import (
	"context"
	"fmt"
	"net/http"

	"sluice.dev/sluice/filters/edgeapi"
)

// SampleRequests has Envoy write a line of success requests that succeed, out of
// edgeapi.WholeSample, and of failure that fail. An Envoy that is started later
// begins with all of them.
func (e *Edge) SampleRequests(ctx context.Context, success, failure int) error {
	_, err := e.admin.call(ctx, http.MethodPost, fmt.Sprintf("/runtime_modify?%s=%d&%s=%d", edgeapi.SuccessSample, success, edgeapi.FailureSample, failure))
	return err
}
