package dashboard

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/workers/webhooks"
)

// webhooksPage are the subscriptions of an account.
type webhooksPage struct {
	Now           time.Time
	Subscriptions []webhooks.Subscription
	Pager         pager
}

// showWebhooks shows the subscriptions of an account.
func (s *site) showWebhooks(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := s.Webhooks.List(r.Context(), a.ID, page.Limit, page.Offset)
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "webhooks", "Webhooks", "/webhooks", webhooksPage{s.Now(), list, pagerOf(r, "/webhooks", page, len(list), total)})
}

// deliveryStates are those by which deliveries can be chosen.
var deliveryStates = []string{"pending", "held", "succeeded", "failed"}

// webhookPage is one subscription with its deliveries.
type webhookPage struct {
	Now          time.Time
	Subscription webhooks.Subscription
	Status       string // of the deliveries shown; empty: any
	States       []string
	Deliveries   []webhooks.Delivery
	Older        int64 // the list goes on before this delivery; 0: it ends here
	Paged        bool  // the list does not begin with the newest
	MayWrite     bool
	Recoveries   []webhooks.Recovery // the latest
	Sinces       []since
	Overlaps     []overlap
	// What a form has done: tried the receiver, or made a secret, which is shown
	// this once.
	Trial  *webhooks.TrialDelivery
	Secret string
}

// mostRecoveries is how many recoveries a page shows.
const mostRecoveries = 5

// showWebhook shows one subscription and its deliveries, newest first.
func (s *site) showWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	return s.webhookWith(w, r, v, a, webhookPage{})
}

// webhookWith shows them with what a form has done.
func (s *site) webhookWith(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, p webhookPage) error {
	p.Now, p.States, p.MayWrite, p.Sinces, p.Overlaps = s.Now(), deliveryStates, v.Has("webhooks:write"), sinces, overlaps
	if status := r.URL.Query().Get("status"); slices.Contains(deliveryStates, status) {
		p.Status = status
	}
	before, err := strconv.ParseInt("0"+r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	p.Paged = before > 0
	if p.Subscription, err = s.Webhooks.Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return err
	}
	f := webhooks.DeliveryFilter{Status: p.Status, Before: before, Limit: perPage}
	if p.Deliveries, err = s.Webhooks.Deliveries(r.Context(), a.ID, p.Subscription.ID, f); err != nil {
		return err
	}
	if p.Recoveries, err = s.Webhooks.Recoveries(r.Context(), a.ID, p.Subscription.ID); err != nil {
		return err
	}
	p.Recoveries = p.Recoveries[:min(len(p.Recoveries), mostRecoveries)]
	if len(p.Deliveries) > perPage {
		p.Deliveries = p.Deliveries[:perPage]
		p.Older = p.Deliveries[perPage-1].Number()
	}
	return s.showOf(w, r, v, a, "webhook", "Webhook", "/webhooks", p)
}

// deliveryPage is one delivery with every attempt.
type deliveryPage struct {
	Now       time.Time
	Delivery  webhooks.DeliveryDetail
	MayResend bool
}

// showDelivery shows one delivery.
func (s *site) showDelivery(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	number, err := strconv.ParseInt(chi.URLParam(r, "number"), 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	p := deliveryPage{Now: s.Now(), MayResend: v.Has("webhooks:write")}
	if p.Delivery, err = s.Webhooks.Delivery(r.Context(), a.ID, chi.URLParam(r, "id"), number); err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "delivery", "Delivery", "/webhooks", p)
}

// resend is the form that sends a delivery again.
func (s *site) resend(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	id, text := chi.URLParam(r, "id"), chi.URLParam(r, "number")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return s.notFound(w, r)
	}
	if err := s.Webhooks.Resend(r.Context(), a.ID, id, number); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/webhooks/"+id+"/deliveries/"+text, v, a, "done", "resent"))
}
