//go:build browser && clients

package e2e

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// formPages are pages on which something is created or changed.
var formPages = []string{
	"/routes/plans", "/streams", "/billing", "/webhooks/new", "/schedules/new", "/routes/new/routes", "/routes/new/products", "/routes/new/plans", "/routes/classes", "/routes/plans/enterprise",
	"/routes/routes/health", "/people", "/people/new", "/people/add", "/access", "/access/allowlist", "/access/limit", "/apps", "/apps/new", "/accounts", "/accounts/new",
	"/billing/plan",
}

// press clicks, and waits for what the next page has.
func (b *tab) press(t *testing.T, button, then string) {
	t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Click(button, chromedp.ByQuery), chromedp.WaitVisible(then, chromedp.ByQuery)); err != nil {
		t.Fatal(button, err, b.complaints())
	}
}

// text is what an element says.
func (b *tab) text(t *testing.T, of string) (text string) {
	t.Helper()
	if err := chromedp.Run(b.ctx, chromedp.Text(of, &text, chromedp.ByQuery)); err != nil {
		t.Fatal(of, err)
	}
	return text
}

// Somebody creates a webhook and changes a plan by clicks alone, and the pages of forms are
// held to what all pages are.
func TestClientsBrowserForms(t *testing.T) {
	s := dashboardStack(t)
	axe, base := axeSource(t), s.dev["SLUICE_ADMIN_URL"]
	admin, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, admin.Host)
	b.signIn(t, base, s.dev["SLUICE_USER_EMAIL"], s.dev["SLUICE_USER_PASSWORD"])
	b.createWebhook(t, s, axe)
	b.changePlan(t, base, axe)
	for _, path := range formPages {
		b.hold(t, base+"/dashboard"+path, "form-"+strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"), axe)
	}
}

// createWebhook fills the form in, first wrongly.
func (b *tab) createWebhook(t *testing.T, s *stack, axe string) {
	t.Helper()
	base := s.dev["SLUICE_ADMIN_URL"]
	if err := chromedp.Run(b.ctx, chromedp.Navigate(base+"/dashboard/webhooks")); err != nil {
		t.Fatal(err)
	}
	b.press(t, `a[href^="/dashboard/webhooks/new"]`, `input[name=url]`)
	if err := chromedp.Run(b.ctx, chromedp.SendKeys(`input[name=url]`, "http://10.0.0.1/x", chromedp.ByQuery), chromedp.SendKeys(`input[name=description]`, "by clicks", chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	b.press(t, `.ask button.main`, `.note.bad`)
	b.shot(t, "form-webhook-wrong")
	for _, v := range b.violations(t, axe) {
		t.Error("the form with its faults:", v)
	}
	if said := b.text(t, "main"); !strings.Contains(said, "events is missing or empty") {
		t.Error(said)
	}
	var kept string
	err := chromedp.Run(b.ctx, chromedp.Value(`input[name=description]`, &kept, chromedp.ByQuery), chromedp.Clear(`input[name=url]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=url]`, "https://receiver.example/clicked", chromedp.ByQuery), chromedp.Click(`input[value="stream.*"]`, chromedp.ByQuery))
	if err != nil || kept != "by clicks" {
		t.Fatalf("%q %v", kept, err)
	}
	b.press(t, `.ask button.main`, `#secret`)
	if secret := b.text(t, "#secret"); !strings.HasPrefix(secret, "whsec_") {
		t.Fatal(secret)
	}
	b.shot(t, "form-webhook-made")
	for _, v := range b.violations(t, axe) {
		t.Error("the page with the secret:", v)
	}
	id := regexp.MustCompile(`wh_\w+`).FindString(b.text(t, "main"))
	got := call(t, "GET", s.url("/v1/webhooks/"+id), s.dev["SLUICE_API_KEY"], nil)
	wantStatus(t, got, 200)
	if hook := into[struct{ URL string }](t, got); hook.URL != "https://receiver.example/clicked" {
		t.Errorf("%+v", hook)
	}
	if err := chromedp.Run(b.ctx, chromedp.Navigate(base+"/dashboard/webhooks/"+id+"/delete"), chromedp.SendKeys(`input[name=confirm]`, "receiver.example", chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	b.press(t, `.ask button.danger`, `.note[role=status]`)
	wantStatus(t, call(t, "GET", s.url("/v1/webhooks/"+id), s.dev["SLUICE_API_KEY"], nil), 404)
}

// changePlan gives a plan a quota, looks at the difference, publishes it, and goes back.
func (b *tab) changePlan(t *testing.T, base, axe string) {
	t.Helper()
	const quota = `input[name="quota.requests"]`
	for _, value := range []string{"123456", ""} {
		if err := chromedp.Run(b.ctx, chromedp.Navigate(base+"/dashboard/routes")); err != nil {
			t.Fatal(err)
		}
		b.press(t, `a[href^="/dashboard/routes/plans"]`, `a[href^="/dashboard/routes/plans/enterprise"]`)
		b.press(t, `a[href^="/dashboard/routes/plans/enterprise"]`, quota)
		if err := chromedp.Run(b.ctx, chromedp.Clear(quota, chromedp.ByQuery), chromedp.SendKeys(quota, value, chromedp.ByQuery)); err != nil {
			t.Fatal(err)
		}
		b.press(t, `.ask button.main`, `#difference`)
		b.shot(t, fmt.Sprintf("form-plan-difference-%q", value))
		for _, v := range b.violations(t, axe) {
			t.Error("the difference:", v)
		}
		if said := b.text(t, "main"); !strings.Contains(said, "plans.enterprise.quota") || !strings.Contains(said, "Nothing is published yet") {
			t.Fatal(said)
		}
		b.press(t, `button[value=publish]`, `.note[role=status]`)
		if said := b.text(t, "main"); !strings.Contains(said, "The change is published") || !strings.Contains(said, "plans.enterprise.quota") {
			t.Fatal(said)
		}
	}
}
