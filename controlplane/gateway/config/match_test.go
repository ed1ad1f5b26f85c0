package config

import (
	"strings"
	"testing"
)

func TestWhatAPatternCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, template string
		want              bool
	}{
		{"/v1/a", "/v1/a", true}, {"/v1/a", "/v1/b", false}, {"/v1/a", "/v1/{x}", false},
		{"/v1/{id}", "/v1/a", true}, {"/v1/{id}", "/v1/{x}", true}, {"/v1/{id}", "/v1/{x}/y", false}, {"/v1/{id}/y", "/v1/{x}", false},
		{"/v1/*", "/v1/a/{x}", true}, {"/v1/*", "/v2/a", false}, {"/", "/", true},
		{"/v1/{id}", "/v1/{X}.json", true}, {"/v1/a/", "/v1/a/", true}, {"/v1/a", "/v1/a/", false},
	} {
		if got := parse(t, c.pattern).Covers(strings.Split(c.template, "/")[1:]); got != c.want {
			t.Errorf("%s covers %s: %v", c.pattern, c.template, got)
		}
	}
}

// The most specific route that takes the method is found, whether or not the
// template is a route's own path.
func TestWhichRouteTakesATemplate(t *testing.T) {
	t.Parallel()
	m := NewMatcher(Document{Routes: []Route{
		{Name: "all", Path: "/*"},
		{Name: "any", Path: "/pets/{name}"},
		{Name: "read", Path: "/pets/{id}/toys", Methods: []string{"GET"}},
		{Name: "put", Path: "/pets/{it}", Methods: []string{"PUT"}},
		{Name: "runtime", Path: "/pets", Listener: Runtime},
	}}, Gateway)
	for template, want := range map[string]string{
		"GET /pets/{petId}": "any", "PUT /pets/{petId}": "put", "GET /pets/{pet_id}": "any", "GET /pets/{a}.{b}": "any", "GET /pets": "all",
		"GET /pets/{x}/toys": "read", "HEAD /pets/{x}/toys": "read", "PUT /pets/{x}/toys": "all",
	} {
		method, path, _ := strings.Cut(template, " ")
		if r, ok := m.Find(method, path); !ok || r.Name != want {
			t.Errorf("%s: %s, not %s", template, r.Name, want)
		}
	}
}
