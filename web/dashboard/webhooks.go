package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/web/dashboard/chart"
	"sluice.dev/sluice/workers/webhooks"
)

// webhooksPage are the subscriptions of an account.
type webhooksPage struct {
	Now           time.Time
	Subscriptions []webhooks.Subscription
	Health        map[string]webhooks.Health
	Pager         pager
}

// State is how a subscription is, in a word: one that is active and whose receiver fails is
// failing.
func (webhooksPage) State(sub webhooks.Subscription) string { return stateOf(sub) }

// stateOf is how a subscription is, in a word.
func stateOf(sub webhooks.Subscription) string {
	if sub.Status == webhooks.Active && !sub.FailingSince.IsZero() {
		return "failing"
	}
	return string(sub.Status)
}

// spark draws how a receiver did in the last hours.
func spark(h webhooks.Health) chart.Chart {
	times, ok, fail := make([]time.Time, len(h.Hours)), make([]int64, len(h.Hours)), make([]int64, len(h.Hours))
	for i, t := range h.Hours {
		ok[i], fail[i] = t.Succeeded, t.Failed
	}
	return chart.Stack(times, []chart.Series{{Name: "Succeeded", Class: "ok", Values: ok}, {Name: "Failed", Class: "fail", Values: fail}}, 0)
}

// showWebhooks shows the subscriptions of an account.
func (s *site) showWebhooks(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := paging.Rows(s.Webhooks.Page(r.Context(), a.ID, "", page))
	if err != nil {
		return err
	}
	ids := make([]string, len(list))
	for i, sub := range list {
		ids[i] = sub.ID
	}
	health, err := s.Webhooks.Health(r.Context(), a.ID, ids)
	if err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "webhooks", "Webhooks", "/webhooks", webhooksPage{s.Now(), list, health, pagerOf(r, "/webhooks", page, len(list), total)})
}

// deliveryStates are those by which deliveries can be chosen.
var deliveryStates = []string{"pending", "held", "succeeded", "failed"}

// deliveriesPart are the deliveries of a subscription, newest first.
type deliveriesPart struct {
	Now        time.Time
	Token      string // of forms
	Self       string // path of the subscription's page
	Live       string // where the part is kept up to date; empty: it is not
	Status     string // of the deliveries shown; empty: any
	States     []string
	Deliveries []webhooks.Delivery
	Older      int64 // the list goes on before this delivery; 0: it ends here
	Paged      bool  // the list does not begin with the newest
	MayWrite   bool
}

// State is how a delivery is, in a word: one that has failed and is tried again is retrying.
func (p deliveriesPart) State(d webhooks.Delivery) string { return deliveryState(d, p.Now) }

// deliveryState is how a delivery is at a time, in a word.
func deliveryState(d webhooks.Delivery, now time.Time) string {
	if d.Status == "pending" && (d.Attempts > 1 || d.Attempts == 1 && d.NextAttemptAt.After(now)) {
		return "retrying"
	}
	return d.Status
}

// deliveries reads the part for whoever looks; the query names the subscription.
func (s *site) deliveries(ctx context.Context, l look) (any, error) {
	id, status, q := cut(l.Query.Get("id")), "", l.Query.Get("status")
	if slices.Contains(deliveryStates, q) {
		status = q
	}
	before, err := strconv.ParseInt("0"+l.Query.Get("before"), 10, 64)
	if err != nil {
		return nil, apierror.Errorf(decision.NotFound, "There is no such page.")
	}
	p := deliveriesPart{Now: s.Now(), Token: l.Token, Self: Root + "/webhooks/" + id, Status: status, States: deliveryStates, Paged: before > 0, MayWrite: l.Has("webhooks:write")}
	f := webhooks.DeliveryFilter{Status: status, Before: before, Limit: perPage}
	if p.Deliveries, err = s.Webhooks.Deliveries(ctx, l.Account.ID, id, f); err != nil {
		return nil, err
	}
	if len(p.Deliveries) > perPage {
		p.Deliveries = p.Deliveries[:perPage]
		p.Older = p.Deliveries[perPage-1].Number()
	}
	if !p.Paged {
		p.Live = Root + "/live/deliveries?" + url.Values{"id": {id}, "status": {status}}.Encode()
	}
	return p, nil
}

// webhookPage is one subscription with its deliveries.
type webhookPage struct {
	Now          time.Time
	Subscription webhooks.Subscription
	State        string
	Health       webhooks.Health
	Spark        chart.Chart
	Part         any // deliveriesPart
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
func (s *site) webhookWith(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, p webhookPage) (err error) {
	p.Now, p.MayWrite, p.Sinces, p.Overlaps = s.Now(), v.Has("webhooks:write"), sinces, overlaps
	if p.Subscription, err = s.Webhooks.Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return err
	}
	q := r.URL.Query()
	q.Set("id", p.Subscription.ID)
	if p.Part, err = s.deliveries(r.Context(), look{v, a, s.token(w, r, v.Session), q}); err != nil {
		return err
	}
	health, err := s.Webhooks.Health(r.Context(), a.ID, []string{p.Subscription.ID})
	if err != nil {
		return err
	}
	p.State, p.Health = stateOf(p.Subscription), health[p.Subscription.ID]
	p.Spark = spark(p.Health)
	if p.Recoveries, _, err = paging.Rows(s.Webhooks.RecoveryPage(r.Context(), a.ID, p.Subscription.ID, paging.Page{Limit: mostRecoveries})); err != nil {
		return err
	}
	return s.showOf(w, r, v, a, "webhook", hostOf(p.Subscription.URL), "/webhooks", p)
}

// hostOf is what a receiver is called: its host.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		return u.Host
	}
	return address
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
