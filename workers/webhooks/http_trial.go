package webhooks

import (
	"context"
	"net/http"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/ids"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/webhooks/catalogue"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// Trial is what a test of a subscription has shown (contract 7.12).
type Trial struct {
	WebhookID string        `json:"webhook_id"`
	TestEvent TrialEvent    `json:"test_event"`
	Delivery  TrialDelivery `json:"delivery"`
}

// TrialEvent names what was sent.
type TrialEvent struct {
	Event     string    `json:"event"`
	Timestamp Timestamp `json:"timestamp"`
}

// TrialDelivery is what came of it. The receiver's body is not in it.
type TrialDelivery struct {
	Status         int   `json:"status"` // of the receiver's answer; 0: none
	ResponseTimeMS int64 `json:"response_time_ms"`
	Success        bool  `json:"success"`
}

// Test sends a test event to the endpoint of a subscription of account, signed,
// and waits for the answer. It is sent once, whatever the state of the
// subscription, and is not in the log of deliveries. It fails with not_found.
func (s *Service) Test(ctx context.Context, account, id string) (Trial, error) {
	url, secrets, err := s.secrets(ctx, account, id)
	if err != nil {
		return Trial{}, err
	}
	e, res, err := s.try(ctx, url, secrets, map[string]any{"webhook_id": id, "message": "This is a test delivery."})
	return Trial{id, TrialEvent{e.Type, Timestamp{e.Time}}, TrialDelivery{res.StatusCode, res.Duration.Milliseconds(), res.OK()}}, err
}

// test answers what Test has shown.
func (h handlers) test(r *http.Request, _ httpapi.None) (Trial, error) {
	account, id := who(r)
	return h.Test(r.Context(), account, id)
}

// urlResult is the answer to a test of a bare URL. It tells nothing of what
// came back but the status, so that it is of no use for looking around.
type urlResult struct {
	Success        bool  `json:"success"`
	ResponseTimeMS int64 `json:"response_time_ms"`
	StatusCode     int   `json:"status_code"`
}

// urlRequest names the address of a test.
type urlRequest struct {
	small
	URL string `json:"url"`
}

// testURL sends a test event to any address that a subscription could have,
// without a signature: there is no secret.
func (h handlers) testURL(r *http.Request, in urlRequest) (urlResult, error) {
	var c checker
	c.url(in.URL)
	if err := h.finishCheck(r.Context(), &c, in.URL); err != nil {
		return urlResult{}, err
	}
	_, res, err := h.try(r.Context(), in.URL, nil, map[string]any{"message": "This is a test delivery."})
	return urlResult{res.OK(), res.Duration.Milliseconds(), res.StatusCode}, err
}

// try sends one test event and waits for the answer.
func (s *Service) try(ctx context.Context, url string, secrets [][]byte, data map[string]any) (events.Event, sender.Response, error) {
	now := s.Now()
	e := events.Event{ID: ids.New("evt_test_", now), Type: catalogue.Test, Time: now, Data: data}
	body, err := Body(e)
	if err != nil {
		return e, sender.Response{}, err
	}
	res := sender.Send(ctx, s.Client, sender.Request{URL: url, EventID: e.ID, Body: body, Secrets: secrets, At: now}, s.Now)
	return e, res, nil
}

var _ sender.Client = (*outbound.Client)(nil)
