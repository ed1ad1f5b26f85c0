package webpage

import (
	"net/http/httptest"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestWhoGetsAPage(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": true, // browsers
		"text/html, */*;q=0.1":               true,
		"Text/HTML ; q=1":                    true,
		"application/json;q=0.5, text/html":  true,
		"text/html;q=x":                      true,
		"":                                   false,
		"*/*":                                false, // curl and most libraries
		"text/*":                             false,
		"application/json":                   false,
		"application/json, text/plain, */*":  false,
		"text/html;q=0.5, application/json":  false,
		"text/html, application/json":        false,
		"text/html;q=0, */*":                 false,
		"application/problem+json;text/html": false,
	} {
		r := httptest.NewRequest("GET", "/docs/errors", nil)
		r.Header.Set("Accept", accept)
		if Wanted(r) != want {
			t.Errorf("Accept: %s: %v", accept, !want)
		}
		r.URL.RawQuery = "format=json"
		if Wanted(r) {
			t.Errorf("Accept: %s: JSON was asked for", accept)
		}
	}
}

func FuzzWanted(f *testing.F) {
	f.Add("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	f.Fuzz(func(t *testing.T, accept string) {
		growth.Linear(t, len(accept), 0, 1<<10, func() { prefersHTML(accept) })
		if prefersHTML(accept) && !prefersHTML("*/*,"+accept) {
			t.Fatalf("%q", accept)
		}
	})
}
