package webhooks

import (
	"net/http"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/outbound"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/controlplane/webhooks/catalogue"
	"sluice.dev/sluice/controlplane/webhooks/sender"
)

// trialResult is the answer to a test of a subscription (spec, "Webhook
// endpoints").
type trialResult struct {
	WebhookID string        `json:"webhook_id"`
	TestEvent trialEvent    `json:"test_event"`
	Delivery  trialDelivery `json:"delivery"`
}

// trialEvent names what was sent.
type trialEvent struct {
	Event     string    `json:"event"`
	Timestamp Timestamp `json:"timestamp"`
}

// trialDelivery is what came of it. The receiver's body is not in it.
type trialDelivery struct {
	Status         int   `json:"status"` // of the receiver's answer; 0: none
	ResponseTimeMS int64 `json:"response_time_ms"`
	Success        bool  `json:"success"`
}

// test sends a test event to a subscription's endpoint, signed, and waits for
// the answer. It is sent once, whatever the state of the subscription, and is
// not in the log of deliveries.
func (h handlers) test(w http.ResponseWriter, r *http.Request) error {
	account, id := who(r)
	url, secrets, err := h.secrets(r.Context(), account, id)
	if err != nil {
		return err
	}
	e, res, err := h.try(r, url, secrets, map[string]any{"webhook_id": id, "message": "This is a test delivery."})
	return answer(w, http.StatusOK, trialResult{
		id, trialEvent{e.Type, Timestamp{e.Time}}, trialDelivery{res.StatusCode, res.Duration.Milliseconds(), res.OK()},
	}, err)
}

// urlResult is the answer to a test of a bare URL. It tells nothing of what
// came back but the status, so that it is of no use for looking around.
type urlResult struct {
	Success        bool  `json:"success"`
	ResponseTimeMS int64 `json:"response_time_ms"`
	StatusCode     int   `json:"status_code"`
}

// testURL sends a test event to any address that a subscription could have,
// without a signature: there is no secret.
func (h handlers) testURL(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		URL string `json:"url"`
	}
	if err := respond.Decode(w, r, bodyLimit, &in); err != nil {
		return err
	}
	var c checker
	c.url(in.URL)
	if err := h.finishCheck(r.Context(), &c, in.URL); err != nil {
		return err
	}
	_, res, err := h.try(r, in.URL, nil, map[string]any{"message": "This is a test delivery."})
	return answer(w, http.StatusOK, urlResult{res.OK(), res.Duration.Milliseconds(), res.StatusCode}, err)
}

// try sends one test event and waits for the answer.
func (h handlers) try(r *http.Request, url string, secrets [][]byte, data map[string]any) (controlplane.Event, sender.Response, error) {
	now := h.Now()
	e := controlplane.Event{ID: newID("evt_test_", now), Type: catalogue.Test, Time: now, Data: data}
	body, err := Body(e)
	if err != nil {
		return e, sender.Response{}, err
	}
	res := sender.Send(r.Context(), h.Client, sender.Request{URL: url, EventID: e.ID, Body: body, Secrets: secrets, At: now}, h.Now)
	return e, res, nil
}

var _ sender.Client = (*outbound.Client)(nil)
