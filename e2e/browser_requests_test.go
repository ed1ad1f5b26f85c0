//go:build browser && clients

package e2e

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/chromedp/chromedp"
)

// The request log in a browser: the list, filtered or not, and one request. What
// happens shows by itself, and an id that is pasted leads to its request.
func TestClientsBrowserRequests(t *testing.T) {
	s := theStack(t)
	axe, base := axeSource(t), s.dev["SLUICE_ADMIN_URL"]
	admin, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := s.newKey(t, "streams:read")
	for range 5 {
		call(t, http.MethodGet, s.url("/v1/streams?limit=1"), key, nil)
		call(t, http.MethodGet, s.url("/v1/streams"), "", nil)
		call(t, http.MethodGet, s.url("/v1/streams/strm_with-a-rather-long-name-that-nobody-has/and/more/of/it"), key, nil)
	}
	refused := s.recordedAs(t, call(t, http.MethodPost, s.url("/v1/streams"), key, map[string]string{"title": "x"}))
	passed := s.recordedAs(t, call(t, http.MethodGet, s.url("/v1/streams/none"), key, nil))
	b := newTab(t, admin.Host)
	b.signIn(t, base, s.dev["SLUICE_USER_EMAIL"], s.dev["SLUICE_USER_PASSWORD"])
	b.hold(t, base+"/dashboard", "overview", axe)
	b.hold(t, base+"/dashboard/requests", "requests", axe)
	b.hold(t, base+"/dashboard/requests?status=4xx&route=streams.create", "requests-filtered", axe)
	b.hold(t, base+"/dashboard/requests/"+refused.ID, "request-refused", axe)
	b.hold(t, base+"/dashboard/requests/"+passed.ID, "request-passed", axe)
	var at string
	err = chromedp.Run(b.ctx, chromedp.Navigate(base+"/dashboard/requests"), chromedp.SendKeys(`input[name=id]`, refused.ID+"\r", chromedp.ByQuery),
		chromedp.WaitVisible(`#facts`, chromedp.ByQuery), chromedp.Location(&at))
	if err != nil || at != base+"/dashboard/requests/"+refused.ID {
		t.Fatal(at, err, b.complaints())
	}
	if err := chromedp.Run(b.ctx, chromedp.Navigate(base+"/dashboard/requests?status=404"), chromedp.WaitVisible(`#live-bar`, chromedp.ByQuery)); err != nil {
		t.Fatal(err)
	}
	id := call(t, http.MethodGet, s.url("/v1/streams/shown-live"), key, nil).Header.Get("X-Request-Id")
	if err := chromedp.Run(b.ctx, chromedp.WaitVisible(`a[href="/dashboard/requests/`+id+`"]`, chromedp.ByQuery)); err != nil {
		t.Fatal(err, b.complaints())
	}
}
