package webhooks

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// errListeners is what the listener gets who is one too many.
var errListeners error = &apierror.Error{Code: decision.RateLimited, RetryAfter: 5, Message: "Too many listeners of the account wait for events already."}

// SetHeaders forbids to keep it: it may be signed.
func (Listened) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// listen answers what has happened since a cursor, as soon as something has. What is
// signed as a subscription's wants the right to change that.
func (h handlers) listen(r *http.Request, _ httpapi.None) (out Listened, err error) {
	f, err := h.listenFilter(r)
	if err != nil {
		return out, err
	}
	c, _ := identity.From(r.Context())
	if f.Webhook != "" && !scopes.Covers(c.Scopes, scopeWrite) {
		return out, &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is missing", Expected: scopeWrite}}}
	}
	entering, cancel := context.WithTimeout(r.Context(), listenEnter)
	defer cancel()
	leave, err := h.listeners.Enter(entering, c.Account)
	if err != nil {
		if errors.Is(err, fairshare.ErrBusy) || entering.Err() != nil && r.Context().Err() == nil {
			err = errListeners
		}
		return out, err
	}
	defer leave()
	return h.Listen(r.Context(), c.Account, f)
}

// listenFilter reads events, webhook, cursor and wait, and names every one that is not
// valid.
func (h handlers) listenFilter(r *http.Request) (f ListenFilter, err error) {
	q := r.URL.Query()
	f = ListenFilter{Webhook: q.Get("webhook"), Cursor: q.Get("cursor"), Wait: 20 * time.Second}
	c := checker{groups: h.Groups}
	if given := q.Get("events"); given != "" {
		f.Events = strings.Split(given, ",")
		for _, e := range f.Events[:min(len(f.Events), MaxEvents)] {
			if !catalogue.KnownIn(catalogue.Of(c.groups), e) {
				c.bad("events", "has one that is not known", "names from GET /v1/webhooks/event-types, or wildcards such as webhook.*, separated by commas")
				break
			}
		}
		if len(f.Events) > MaxEvents {
			c.bad("events", "has too many entries", "at most "+strconv.Itoa(MaxEvents))
		}
	}
	if given := q.Get("wait"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 0 || n > int(MaxListenWait/time.Second) {
			c.bad("wait", "is out of range", "0 to "+strconv.Itoa(int(MaxListenWait/time.Second))+" seconds")
		}
		f.Wait = time.Duration(n) * time.Second
	}
	return f, apierror.Invalid(c.details)
}

// triggerRequest is an event that is to be tried.
type triggerRequest struct {
	small
	Trigger
}

// trigger answers 201 with the event that was stored.
func (h handlers) trigger(r *http.Request, in triggerRequest) (Triggered, error) {
	return h.Trigger(r.Context(), identity.Account(r.Context()), in.Trigger)
}
