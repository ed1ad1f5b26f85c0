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

// deliveryPage is a page of deliveries. It goes by cursor, because new ones
// come in at the front while it is read.
type deliveryPage struct {
	Data       []Delivery `json:"data"`
	Pagination struct {
		Limit      int     `json:"limit"`
		HasMore    bool    `json:"has_more"`
		NextCursor *string `json:"next_cursor"`
	} `json:"pagination"`
}

// deliveryStatuses are what a list may be narrowed to; the empty one does not.
var deliveryStatuses = []string{"", "pending", "held", "succeeded", "failed"}

// deliveries answers a page, newest first. One more than the page holds is read,
// to know whether there is another page without counting.
func (h handlers) deliveries(r *http.Request, _ httpapi.None) (page deliveryPage, err error) {
	f, err := deliveryFilter(r)
	if err != nil {
		return page, err
	}
	account, id := who(r)
	list, err := h.Deliveries(r.Context(), account, id, f)
	if err != nil {
		return page, err
	}
	page.Data = append([]Delivery{}, list[:min(len(list), f.Limit)]...)
	page.Pagination.Limit, page.Pagination.HasMore = f.Limit, len(list) > f.Limit
	if page.Pagination.HasMore {
		page.Pagination.NextCursor = &page.Data[f.Limit-1].ID
	}
	return page, nil
}

// deliveryFilter reads limit, cursor, status and event, and names every one that
// is not valid.
func deliveryFilter(r *http.Request) (DeliveryFilter, error) {
	q := r.URL.Query()
	p, details := paging.Parse(q)
	c := checker{details: details}
	f := DeliveryFilter{Status: q.Get("status"), Event: q.Get("event"), Limit: p.Limit}
	if !slices.Contains(deliveryStatuses, f.Status) {
		c.bad("status", "is not known", "pending, held, succeeded or failed")
	}
	if !plain(f.Event) {
		c.bad("event", "has characters that are not allowed", "event name")
	}
	if cursor := q.Get("cursor"); cursor != "" {
		var ok bool
		if f.Before, ok = parseDeliveryID(cursor); !ok {
			c.bad("cursor", "is not valid", "next_cursor of the page before")
		}
	}
	return f, apierror.Invalid(c.details)
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

// recoveries answers the latest hundred of a subscription.
func (h handlers) recoveries(r *http.Request, _ httpapi.None) (data[Recovery], error) {
	account, id := who(r)
	list, err := h.Recoveries(r.Context(), account, id)
	return data[Recovery]{append([]Recovery{}, list...)}, err
}

// recovery answers how far one is.
func (h handlers) recovery(r *http.Request, _ httpapi.None) (Recovery, error) {
	account, id := who(r)
	return h.Recovery(r.Context(), account, id, chi.URLParam(r, "recovery"))
}
