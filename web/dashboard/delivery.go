package dashboard

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/webhooks"
)

// deliveryPage is one delivery with every attempt.
type deliveryPage struct {
	Now       time.Time
	Delivery  webhooks.DeliveryDetail
	State     string
	Attempts  []attempt // the latest first
	Curl      string    // the request, signed now; empty: nothing can sign it any more
	Compared  []difference
	A, B      int // the attempts that are compared
	MayResend bool
}

// attempt is one request with its headers, signatures included.
type attempt struct {
	webhooks.Attempt
	Sent []pair
}

// pair is a header.
type pair struct{ Name, Value string }

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
	p.State = deliveryState(p.Delivery.Delivery, p.Now)
	if err := s.sign(r, a, &p); err != nil {
		return err
	}
	p.compare(r.URL.Query())
	return s.showOf(w, r, v, a, "delivery", p.Delivery.Event, "/webhooks", p)
}

// sign puts headers on the attempts, and makes the command that sends the event again. A
// subscription that is gone signs nothing.
func (s *site) sign(r *http.Request, a accounts.Account, p *deliveryPage) error {
	d := p.Delivery
	signed, err := s.Webhooks.Signer(r.Context(), a.ID, d.WebhookID)
	if err != nil && apierror.Code(err) != decision.NotFound {
		return err
	}
	for _, one := range d.AttemptLog {
		h := one.Request.Headers
		if signed != nil {
			h = signed(d.EventID, d.Body, one.StartedAt.Time)
		}
		p.Attempts = append(p.Attempts, attempt{one, fields(h)})
	}
	if signed == nil {
		return nil
	}
	sub, err := s.Webhooks.Get(r.Context(), a.ID, d.WebhookID)
	if err == nil {
		p.Curl = asCurl(sub.URL, fields(signed(d.EventID, d.Body, p.Now)), d.Body)
	}
	return err
}

// fields are headers in the order of their names.
func fields(h http.Header) (list []pair) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			list = append(list, pair{name, value})
		}
	}
	return list
}

// asCurl is the command that sends a request with curl.
func asCurl(address string, headers []pair, body []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "curl -i -X POST %s", quoted(address))
	for _, h := range headers {
		fmt.Fprintf(&b, " \\\n  -H %s", quoted(h.Name+": "+h.Value))
	}
	fmt.Fprintf(&b, " \\\n  --data-binary %s", quoted(string(body)))
	return b.String()
}

// quoted is text as a shell takes it for one word.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// difference is what two attempts have in one respect.
type difference struct {
	Name, A, B string
	Differs    bool
}

// compare sets the two attempts side by side that a query names: unless it names others, the
// last one and the one before.
func (p *deliveryPage) compare(q url.Values) {
	if len(p.Attempts) < 2 {
		return
	}
	find := func(name string, otherwise int) attempt {
		for _, one := range p.Attempts {
			if q.Get(name) == strconv.Itoa(one.Number) {
				return one
			}
		}
		return p.Attempts[otherwise]
	}
	a, b := find("a", 1), find("b", 0)
	p.A, p.B = a.Number, b.Number
	add := func(name, one, other string) {
		if one != "" || other != "" {
			p.Compared = append(p.Compared, difference{name, one, other, one != other})
		}
	}
	add("Started", instant(a.StartedAt.Time), instant(b.StartedAt.Time))
	add("URL", a.Request.URL, b.Request.URL)
	add("Outcome", a.Outcome, b.Outcome)
	add("Error", a.Error, b.Error)
	add("Duration", lasted(a), lasted(b))
	add("Status", responded(a), responded(b))
	ours, theirs := answered(a), answered(b)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(ours.Headers)), slices.Collect(maps.Keys(theirs.Headers))...)))) {
		add(name, ours.Headers[name], theirs.Headers[name])
	}
	add("Response body", ours.BodyHead, theirs.BodyHead)
}

// answered is what came back, or nothing.
func answered(a attempt) webhooks.LoggedResponse {
	if a.Response == nil {
		return webhooks.LoggedResponse{}
	}
	return *a.Response
}

// responded is the status that came back, "" for none.
func responded(a attempt) string {
	if a.Response == nil {
		return ""
	}
	return strconv.Itoa(a.Response.StatusCode)
}

// lasted is how long an attempt took, "" while it is under way.
func lasted(a attempt) string {
	if a.DurationMS == nil {
		return ""
	}
	return millis(float64(*a.DurationMS))
}
