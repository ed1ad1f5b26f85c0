//go:build browser && clients

package e2e

// The dashboard and the documentation in a real browser: nothing that the
// Content-Security-Policy stops, no request to anywhere else, no fault of
// accessibility. `make browser` runs it; SLUICE_SCREENSHOTS names a folder for
// pictures of every page, on a phone and on a desk, light and dark.

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look is how a page is looked at.
type look struct {
	name   string
	width  int64
	height int64
	scheme string
}

var looks = []look{{"desk-light", 1280, 900, "light"}, {"desk-dark", 1280, 900, "dark"}, {"phone-light", 375, 800, "light"}, {"phone-dark", 375, 800, "dark"}}

// tab is a page of a browser, and what it complained of.
type tab struct {
	ctx    context.Context
	mu     sync.Mutex
	faults []string
}

// newTab starts a browser.
func newTab(t *testing.T, allowed ...string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(cancel)
	b := &tab{ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) { b.note(event, allowed) })
	if err := chromedp.Run(ctx, network.Enable(), cdplog.Enable(), runtime.Enable()); err != nil {
		t.Fatal(err)
	}
	return b
}

// note keeps what the browser complains of: requests to hosts that are not
// allowed, broken policies, scripts that fail.
func (b *tab) note(event any, allowed []string) {
	fault := ""
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && u.Scheme != "about" && !slices.Contains(allowed, u.Host) {
			fault = "request to " + e.Request.URL
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.LevelError {
			fault = e.Entry.Text
		}
	case *runtime.EventExceptionThrown:
		fault = e.ExceptionDetails.Error()
	}
	if fault != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.faults = append(b.faults, fault)
	}
}

// complaints returns them, and forgets them.
func (b *tab) complaints() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, b.faults = b.faults, nil
	return list
}

// signIn fills the form in and sends it, on a screen that is wide enough for the menu.
func (b *tab) signIn(t *testing.T, base, email, password string) {
	t.Helper()
	err := chromedp.Run(b.ctx,
		chromedp.EmulateViewport(1280, 900),
		chromedp.Navigate(base+"/"),
		chromedp.WaitVisible(`input[name=email]`, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=email]`, email, chromedp.ByQuery),
		chromedp.SendKeys(`input[name=password]`, password+"\r", chromedp.ByQuery),
		chromedp.WaitVisible(`nav[aria-label=Sections]`, chromedp.ByQuery))
	if err != nil {
		t.Fatal(err, b.complaints())
	}
}

// violations runs axe on the page as it is: what is wrong by WCAG 2.2 A and AA and
// by good practice.
func (b *tab) violations(t *testing.T, axe string) (list []string) {
	t.Helper()
	var out string
	err := chromedp.Run(b.ctx,
		chromedp.Evaluate(axe+";0", nil),
		chromedp.Evaluate(`axe.run().then(r => JSON.stringify({passes: r.passes.length, violations: r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary).join(" | "))}))`,
			&out, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		Passes     int
		Violations []string
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || result.Passes < 5 {
		t.Fatalf("axe has passed %d rules: %v", result.Passes, err)
	}
	return result.Violations
}

// shot takes a picture of the whole page, if pictures are wanted.
func (b *tab) shot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("SLUICE_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	if err := chromedp.Run(b.ctx, chromedp.FullScreenshot(&png, 100)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hold looks at a page in every way and reports what is wrong with it.
func (b *tab) hold(t *testing.T, address, name, axe string) {
	t.Helper()
	for _, l := range looks {
		var wide bool
		err := chromedp.Run(b.ctx,
			emulation.SetDeviceMetricsOverride(l.width, l.height, 1, l.width < 500),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}),
			chromedp.Navigate(address),
			chromedp.WaitVisible(`main`, chromedp.ByQuery),
			chromedp.Evaluate(`document.querySelectorAll("details").forEach(d => d.open = true)`, nil), // what is folded is looked at too
			// Not innerWidth: on a phone the browser zooms out until a page fits.
			chromedp.Evaluate(fmt.Sprintf(`document.documentElement.scrollWidth > %d`, l.width), &wide))
		if err != nil {
			t.Fatal(name, err)
		}
		if wide {
			t.Errorf("%s, %s: the page scrolls sideways", name, l.name)
		}
		b.shot(t, name+"."+l.name)
		for _, v := range b.violations(t, axe) {
			t.Errorf("%s, %s: %s", name, l.name, v)
		}
	}
	for _, c := range b.complaints() {
		t.Errorf("%s: %s", name, c)
	}
}

// axeSource is axe-core, installed as its lock file says.
func axeSource(t *testing.T) string {
	t.Helper()
	dir := installed(t, "browser", "package-lock.json", []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"})
	b, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestClientsBrowserDashboard(t *testing.T) {
	s := dashboardStack(t)
	axe, base := axeSource(t), s.dev["SLUICE_ADMIN_URL"]
	admin, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, admin.Host)
	b.hold(t, base+"/dashboard/sign-in", "sign-in", axe)
	b.signIn(t, base, s.dev["SLUICE_USER_EMAIL"], s.dev["SLUICE_USER_PASSWORD"])
	var found string
	if err := chromedp.Run(b.ctx, chromedp.Evaluate(`JSON.stringify([...document.querySelectorAll("nav[aria-label=Sections] a")].map(a => a.pathname))`, &found)); err != nil {
		t.Fatal(err)
	}
	paths := intoText[[]string](t, found)
	if len(paths) < 10 {
		t.Fatalf("the menu has only %v", paths)
	}
	for _, path := range append(paths, dashboardDetails(t, s)...) {
		name := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(path, "/dashboard"), "/"), "/", "-")
		b.hold(t, base+path, "dashboard-"+name, axe)
	}
	b.keyboard(t, base)
	b.liveParts(t, s)
}

// keyboard goes over a page by the keyboard alone: the first stop leads past the
// menu, and every stop can be seen.
func (b *tab) keyboard(t *testing.T, base string) {
	t.Helper()
	var first, focused string
	var outlines bool
	err := chromedp.Run(b.ctx,
		chromedp.Navigate(base+"/dashboard/keys"), chromedp.WaitVisible(`main`, chromedp.ByQuery),
		chromedp.KeyEvent("\t"), chromedp.Evaluate(`document.activeElement.className`, &first),
		chromedp.KeyEvent("\r"), chromedp.Evaluate(`document.activeElement.id`, &focused),
		chromedp.KeyEvent("\t"), chromedp.Evaluate(`getComputedStyle(document.activeElement).outlineStyle !== "none"`, &outlines))
	if err != nil {
		t.Fatal(err)
	}
	if first != "skip" || focused != "main" || !outlines {
		t.Errorf("the first stop is %q, it leads to %q, an outline is there: %v", first, focused, outlines)
	}
}

// liveParts waits for the overview to count a request by itself.
func (b *tab) liveParts(t *testing.T, s *stack) {
	t.Helper()
	const count = `document.querySelectorAll("[data-live] .tile dd")[2].textContent.replace(/\D/g, "")`
	var before, state string
	err := chromedp.Run(b.ctx, chromedp.Navigate(s.dev["SLUICE_ADMIN_URL"]+"/dashboard"),
		chromedp.WaitVisible(`#live-bar`, chromedp.ByQuery), chromedp.Evaluate(count, &before))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		wantStatus(t, call(t, "GET", s.url("/v1/streams"), s.dev["SLUICE_API_KEY"], nil), 200)
	}
	err = chromedp.Run(b.ctx, chromedp.Poll(fmt.Sprintf(`Number(%s) >= %s + 20`, count, before), nil, chromedp.WithPollingTimeout(patience)),
		chromedp.Evaluate(`document.querySelector("[data-state]").textContent`, &state))
	if err != nil || state != "Live" {
		t.Fatal(err, state, b.complaints())
	}
}

// The documentation is held to the same, page by page.
func TestClientsBrowserDocs(t *testing.T) {
	s := theStack(t)
	axe, base := axeSource(t), s.dev["SLUICE_GATEWAY_URL"]
	gateway, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t, gateway.Host)
	var found string
	err = chromedp.Run(b.ctx, chromedp.Navigate(base+"/docs"), chromedp.WaitVisible(`main`, chromedp.ByQuery),
		chromedp.Evaluate(`JSON.stringify([...document.querySelectorAll("#menu a")].map(a => a.pathname))`, &found))
	if err != nil {
		t.Fatal(err)
	}
	paths := intoText[[]string](t, found)
	if len(paths) < 18 {
		t.Fatalf("the menu has only %v", paths)
	}
	for _, path := range append(paths, "/docs/search?q=rate+limit", "/docs/admin-api/listAccounts", "/docs/runtime-api/createChatCompletion", "/docs/errors/AUTH_002", "/docs/events/stream.started", "/docs/reference/createStream") {
		if strings.HasPrefix(path, "/docs") { // the rest is for machines
			b.hold(t, base+path, strings.ReplaceAll(strings.Trim(path, "/"), "/", "-"), axe)
		}
	}
}
