package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"sluice.dev/sluice/filters/edgeapi"
)

// SendRequests brings what was recorded of requests to a replica. An error says that
// no replica has taken it; one may have and not have been able to say so, and takes
// it for the same the next time. What a replica calls malformed is not sent again.
func (r *Relay) SendRequests(ctx context.Context, b edgeapi.RequestBatch) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://replica"+edgeapi.RequestsPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := r.upstreams.http.Do(q)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<10))
	switch {
	case res.StatusCode/100 == 2:
		return nil
	case res.StatusCode == http.StatusBadRequest, res.StatusCode == http.StatusRequestEntityTooLarge, res.StatusCode == http.StatusNotFound: // a replica of before has no such path
		r.cfg.Log.Warn("a replica refuses what was recorded of requests", "status", res.StatusCode)
		return nil
	}
	return fmt.Errorf("a replica answered %d", res.StatusCode)
}
