package webhooks

import (
	"net/http"
	"slices"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// deliveryStatuses are what a list may be narrowed to; the empty one does not.
var deliveryStatuses = []string{"", "pending", "held", "succeeded", "failed"}

// deliveries answers a page.
func (h handlers) deliveries(r *http.Request, _ httpapi.None) (l paging.List[Delivery], err error) {
	q := r.URL.Query()
	p, details := Deliveries.Parse(q)
	c := checker{details: details}
	f := DeliveryFilter{Status: q.Get("status"), Event: q.Get("event")}
	if !slices.Contains(deliveryStatuses, f.Status) {
		c.bad("status", "is not known", "pending, held, succeeded or failed")
	}
	if !plain(f.Event) {
		c.bad("event", "has characters that are not allowed", "event name")
	}
	if err := apierror.Invalid(c.details); err != nil {
		return l, err
	}
	account, id := who(r)
	return h.DeliveryPage(r.Context(), account, id, f, p)
}

// deliveryNumber is the delivery that a request names; one that cannot be is
// not found.
func deliveryNumber(r *http.Request) (int64, error) {
	n, ok := parseDeliveryID(chi.URLParam(r, "delivery"))
	if !ok {
		return 0, &apierror.Error{Code: decision.NotFound}
	}
	return n, nil
}

// delivery answers one with its body and its log.
func (h handlers) delivery(r *http.Request, _ httpapi.None) (d DeliveryDetail, err error) {
	n, err := deliveryNumber(r)
	if err != nil {
		return d, err
	}
	account, id := who(r)
	return h.Delivery(r.Context(), account, id, n)
}

// resend answers 202 with the delivery as it is now: pending, due at once.
func (h handlers) resend(r *http.Request, _ httpapi.None) (Delivery, error) {
	n, err := deliveryNumber(r)
	if err != nil {
		return Delivery{}, err
	}
	account, id := who(r)
	if err := h.Resend(r.Context(), account, id, n); err != nil {
		return Delivery{}, err
	}
	d, err := h.Delivery(r.Context(), account, id, n)
	return d.Delivery, err
}

// recoverRequest is what is to be sent again.
type recoverRequest struct {
	small
	Since         time.Time `json:"since"`
	Until         time.Time `json:"until"` // absent: now
	IncludeMissed bool      `json:"include_missed"`
}

// recover answers 202 with the recovery that has begun; its progress is read at
// its own address.
func (h handlers) recover(r *http.Request, in recoverRequest) (Recovery, error) {
	account, id := who(r)
	return h.Recover(r.Context(), account, id, in.Since, in.Until, in.IncludeMissed)
}

// recoveries answers a page of those of a subscription.
func (h handlers) recoveries(r *http.Request, _ httpapi.None) (l paging.List[Recovery], err error) {
	p, details := Recoveries.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return l, err
	}
	account, id := who(r)
	return h.RecoveryPage(r.Context(), account, id, p)
}

// recovery answers how far one is.
func (h handlers) recovery(r *http.Request, _ httpapi.None) (Recovery, error) {
	account, id := who(r)
	return h.Recovery(r.Context(), account, id, chi.URLParam(r, "recovery"))
}
