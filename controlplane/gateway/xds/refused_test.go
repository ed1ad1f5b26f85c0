package xds

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// A product that an edge cannot take, for want of a file on its machine, is
// refused and reported by itself: what else is in that version works, and so
// does the next one.
func TestProductThatAnEdgeRefusesHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	product := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "docs") }))
	t.Cleanup(product.Close)
	upstream := product.Listener.Addr().String()
	s, addr := newServer(t, Config{AckTimeout: 10 * time.Second})
	publish(t, s, 1, variant(t, 1, upstream))
	admin, _ := startEnvoy(t, addr)
	url := poll(t, func() string { return gateway(admin) })

	keyless := variant(t, 2, upstream)
	keyless.Products = append(keyless.Products, config.Product{Name: "keyless", Upstreams: []config.Upstream{{Address: "127.0.0.1:1"}},
		TLS: &config.TLS{ServerName: "a.example", CertFile: "/nowhere/cert.pem", KeyFile: "/nowhere/key.pem"}})
	keyless.Routes = append(keyless.Routes, config.Route{Name: "keyless", Path: "/v1/keyless", Product: "keyless", Auth: []string{"none"}})
	publish(t, s, 2, keyless)
	if got := get(url + "/docs/errors"); got != "200 docs" {
		t.Errorf("another product: %s", got)
	}
	if got := get(url + "/v1/keyless"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "service_unavailable") {
		t.Errorf("the product itself: %s", got)
	}
	if e := s.Edges()[0]; e.Current || len(e.Refusals) != 1 || !strings.Contains(e.Refusals[0], "keyless") || !strings.Contains(e.Refusals[0], "/nowhere") {
		t.Errorf("%+v", e.Refusals)
	}
	publish(t, s, 3, variant(t, 3, upstream))
	if got := get(url + "/docs/errors"); got != "200 docs" {
		t.Errorf("the next version: %s", got)
	}
	if e := s.Edges()[0]; !e.Current {
		t.Errorf("after the next version: %+v", e)
	}
}
