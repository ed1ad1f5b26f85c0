package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// webhookForm is the form of a subscription, filled in with what it is.
func (s *site) webhookForm(w webhooks.Subscription) *form {
	number := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	concurrency := ""
	if w.MaxConcurrency > 0 {
		concurrency = strconv.Itoa(w.MaxConcurrency)
	}
	delays := make([]string, len(w.RetrySchedule))
	for i, seconds := range w.RetrySchedule {
		delays[i] = strconv.Itoa(seconds)
	}
	return &form{Back: "/webhooks", Name: "All webhooks", Fields: []field{
		{Name: "url", Label: "Receiver", Hint: "An https:// URL that accepts POST requests.", Value: w.URL, Required: true, Max: webhooks.MaxURL},
		{Name: "events", Label: "Events", Kind: "checks", Chosen: w.Events, Choices: s.eventChoices()},
		{Name: "description", Label: "Description", Value: w.Description, Max: webhooks.MaxDescription},
		{Name: "ordered", Label: "Deliver in order, one at a time", Kind: "check", Value: onIf(w.Ordered)},
		{Name: "max_concurrency", Label: "Deliveries at once", Kind: "number", Hint: "1 to 256; empty: 32.", Value: concurrency, Max: 5},
		{Name: "rate_per_second", Label: "Deliveries a second", Kind: "number", Hint: "1 to 1000; empty: no limit.", Value: number(w.RatePerSecond), Max: 5},
		{Name: "retry_schedule", Label: "Delays between attempts", Hint: "Seconds, separated by commas; empty: those of the platform.", Value: strings.Join(delays, ", "), Max: 200},
	}}
}

// onIf is the value of a check.
func onIf(b bool) string {
	if b {
		return "on"
	}
	return ""
}

// eventChoices are the events that can be subscribed to here: all, each group, and each.
func (s *site) eventChoices() []choice {
	list := []choice{{"*", "all events"}}
	group := ""
	for _, t := range s.Webhooks.Types() {
		if t.Name == catalogue.Test { // is sent whatever a subscription asks for
			continue
		}
		if of, _, _ := strings.Cut(t.Name, "."); of != group {
			group = of
			list = append(list, choice{of + ".*", of + ".*"})
		}
		list = append(list, choice{t.Name, t.Name})
	}
	return list
}

// newWebhook shows the form of a new subscription.
func (s *site) newWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	f := s.webhookForm(webhooks.Subscription{})
	f.Action, f.Submit = "/webhooks/new", "Create webhook"
	return s.ask(w, r, v, a, "/webhooks", "New webhook", f)
}

// createWebhook is that form. The secret is made here, and shown this once.
func (s *site) createWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "webhooks:write")
	if err != nil {
		return err
	}
	f := s.webhookForm(webhooks.Subscription{})
	f.Action, f.Submit = "/webhooks/new", "Create webhook"
	f.fill(r)
	in, err := readWebhook(f)
	var sub webhooks.Subscription
	if err == nil {
		sub, err = s.Webhooks.Create(r.Context(), a.ID, webhooks.Create{
			URL: in.url, Events: in.events, Secret: newSecret(), Description: in.description, RetrySchedule: in.schedule,
			MaxConcurrency: in.concurrency, RatePerSecond: in.rate, Ordered: in.ordered,
		})
	}
	return s.asked(w, r, v, a, "/webhooks", "New webhook", f, err, func() error {
		return s.made(w, r, v, a, "/webhooks", "Webhook created", madePage{
			Label: "The webhook's secret", Text: sub.Secret, Intro: "Give it to the receiver, which verifies the signature of each delivery with it.",
			Facts: []choice{{sub.URL, "Receiver"}, {sub.ID, "ID"}}, Next: "/webhooks/" + sub.ID, Name: "Show the webhook",
		})
	})
}

// typedWebhook is what the form of a subscription says.
type typedWebhook struct {
	url, description  string
	events            []string
	ordered           bool
	concurrency, rate *int // nil: empty
	schedule          []int
}

// readWebhook reads the form; it fails for what is no number.
func readWebhook(f *form) (in typedWebhook, err error) {
	in = typedWebhook{url: f.text("url"), events: f.at("events").Chosen, description: f.text("description"), ordered: f.text("ordered") != ""}
	var details []decision.Detail
	number := func(name, text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			details = append(details, decision.Detail{Field: name, Issue: "is not a whole number"})
		}
		return n
	}
	optional := func(name string) *int {
		if f.text(name) == "" {
			return nil
		}
		return new(number(name, f.text(name)))
	}
	in.concurrency, in.rate = optional("max_concurrency"), optional("rate_per_second")
	for _, text := range f.parts("retry_schedule") {
		in.schedule = append(in.schedule, number("retry_schedule", text))
	}
	return in, apierror.Invalid(details)
}

// editedWebhook is the subscription that a page changes, and its form.
func (s *site) editedWebhook(r *http.Request, v viewer) (a accounts.Account, sub webhooks.Subscription, f *form, err error) {
	if a, err = s.allowed(r, v, "webhooks:write"); err != nil {
		return a, sub, nil, err
	}
	if sub, err = s.Webhooks.Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return a, sub, nil, err
	}
	f = s.webhookForm(sub)
	offered := f.at("events")
	for _, name := range sub.Events { // of before, or of a wildcard that is not among the choices
		if !slices.ContainsFunc(offered.Choices, func(c choice) bool { return c.Value == name }) {
			offered.Choices = append(offered.Choices, choice{name, name})
		}
	}
	f.Back, f.Name = "/webhooks/"+sub.ID, "The webhook"
	f.Action, f.Submit = "/webhooks/"+sub.ID+"/edit", "Save"
	return a, sub, f, nil
}

// editWebhookPage shows the form of a subscription.
func (s *site) editWebhookPage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, _, f, err := s.editedWebhook(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/webhooks", "Edit webhook", f)
}

// editWebhook is that form.
func (s *site) editWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, sub, f, err := s.editedWebhook(r, v)
	if err != nil {
		return err
	}
	f.fill(r)
	in, err := readWebhook(f)
	if err == nil {
		concurrency, rate := webhooks.DefaultConcurrency, 0 // what is empty goes back to its default
		if in.concurrency != nil {
			concurrency = *in.concurrency
		}
		if in.rate != nil {
			rate = *in.rate
		}
		_, err = s.Webhooks.Update(r.Context(), a.ID, sub.ID, webhooks.Update{
			URL: &in.url, Events: &in.events, Description: &in.description, RetrySchedule: &in.schedule,
			MaxConcurrency: &concurrency, RatePerSecond: &rate, Ordered: &in.ordered,
		})
	}
	return s.asked(w, r, v, a, "/webhooks", "Edit webhook", f, err, func() error {
		return seeOther(w, r, linkOf("/webhooks/"+sub.ID, v, a, "done", "saved"))
	})
}

// webhookName is what is typed to delete a subscription: the host of its receiver.
func webhookName(sub webhooks.Subscription) string {
	if u, err := url.Parse(sub.URL); err == nil && u.Host != "" {
		return u.Host
	}
	return sub.ID
}

// deleteWebhook deletes a subscription, once that is confirmed.
func (s *site) deleteWebhook(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, sub, _, err := s.editedWebhook(r, v)
	if err != nil {
		return err
	}
	at := "/webhooks/" + sub.ID
	return s.confirm(w, r, v, a, danger{
		At: at + "/delete", Here: "/webhooks", Back: at, Place: "The webhook", Title: "Delete webhook", Do: "Delete webhook", Name: webhookName(sub),
		Intro: "The subscription to " + sub.URL + " and the log of its deliveries are deleted. Deliveries that wait are not sent. To stop it for a while, pause it instead.",
		Done:  "/webhooks", Said: "webhook-deleted",
	}, func(*form) error { return s.Webhooks.Delete(r.Context(), a.ID, sub.ID) })
}
