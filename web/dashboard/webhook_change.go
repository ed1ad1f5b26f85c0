package dashboard

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/webhooks"
)

// holdWebhook is the form that pauses a subscription, or makes it active again,
// which releases what has waited.
func (s *site) holdWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	status, message := webhooks.Paused, "webhook-paused"
	if r.PostForm.Get("status") == string(webhooks.Active) {
		status, message = webhooks.Active, "webhook-resumed"
	}
	sub, err := s.Webhooks.Update(r.Context(), a.ID, chi.URLParam(r, "id"), webhooks.Update{Status: &status})
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/webhooks/"+sub.ID, v, a, "done", message))
}

// testWebhook is the form that sends a test event, and shows what the receiver
// has answered.
func (s *site) testWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	trial, err := s.Webhooks.Test(r.Context(), a.ID, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return s.webhookWith(w, r, v, a, webhookPage{Trial: &trial.Delivery})
}

// rotateWebhook is the form that gives a subscription a new secret, made here and
// shown this once. The old one signs beside it for the overlap that was chosen.
func (s *site) rotateWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	life, err := overlapOf(r)
	if err != nil {
		return err
	}
	sub, err := s.Webhooks.Rotate(r.Context(), a.ID, chi.URLParam(r, "id"), newSecret(), life)
	if err != nil {
		return err
	}
	return s.webhookWith(w, r, v, a, webhookPage{Secret: sub.Secret})
}

// newSecret is one in the form that libraries of Standard Webhooks take.
func newSecret() string {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(raw[:])
}

// since is how far back a recovery looks.
type since struct {
	Name, Label string
	back        time.Duration
}

// sinces are those that can be chosen.
var sinces = []since{
	{"hour", "the last hour", time.Hour},
	{"day", "the last 24 hours", 24 * time.Hour},
	{"week", "the last 7 days", 7 * 24 * time.Hour},
	{"month", "the last 30 days", 30 * 24 * time.Hour},
}

// recoverWebhook is the form that sends everything again that has failed since a
// time.
func (s *site) recoverWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	i := slices.IndexFunc(sinces, func(one since) bool { return one.Name == r.PostForm.Get("since") })
	if i < 0 {
		return apierror.Errorf(decision.InvalidRequest, "The form does not say from when deliveries should be replayed.")
	}
	id := chi.URLParam(r, "id")
	from := s.Now().Add(-sinces[i].back)
	if _, err := s.Webhooks.Recover(r.Context(), a.ID, id, from, time.Time{}, r.PostForm.Get("missed") != ""); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/webhooks/"+id, v, a, "done", "recovering"))
}
