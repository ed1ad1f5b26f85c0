package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// methodsDocument maps some methods of some paths; %s is the service's address.
const methodsDocument = `include: [builtin]
products:
  - name: shop
    upstream: %s
  - name: pages
    upstream: %[1]s
    cors: {origins: ["https://app.example"]}
routes:
  - {name: orders.list, path: /v1/orders, methods: [GET], product: shop, auth: [none]}
  - {name: orders.create, path: /v1/orders, methods: [POST], product: shop}
  - {name: orders.item, path: "/v1/orders/{id}", methods: [GET, DELETE], product: shop}
  - {name: orders.hidden, path: /v1/hidden, methods: [GET], product: shop, hosts: [internal.example]}
  - {name: orders.pages, path: /v1/pages, methods: [GET], product: pages}
  - {name: orders.own, path: /v1/own, methods: [GET, OPTIONS], product: shop, auth: [none]}
  - {name: orders.status, path: /status, methods: [GET], product: shop, auth: [none]}
  - {name: orders.chat, path: /v1/talk, methods: [POST], product: shop, listener: runtime}
`

// asking are the methods that a service was asked with.
type asking struct {
	mu   sync.Mutex
	list []string
}

func (s *asking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, r.Method+" "+r.URL.Path)
	w.Header().Set("X-Note", "noted")
	fmt.Fprint(w, "a body")
}

func (s *asking) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// A path that is mapped says its methods, and one that is not says what comes near: to
// anybody who may see the route, also while the control plane is away.
func TestMethodsAndPaths(t *testing.T) {
	t.Parallel()
	asked := &asking{}
	service := httptest.NewServer(asked)
	t.Cleanup(service.Close)
	s := lentGateway(t)
	s.apply(t, fmt.Sprintf(methodsDocument, service.URL))
	check := func() {
		for _, c := range []struct {
			method, path, host string
			status             int
			allow, saying      string
		}{
			{"PATCH", "/v1/orders", "", 403, "GET, HEAD, POST, OPTIONS", "PATCH is not mapped here; this path takes GET and POST"},
			{"POST", "/v1/orders/7", "", 403, "GET, DELETE, HEAD, OPTIONS", "POST is not mapped here; this path takes GET and DELETE"},
			{"POST", "/status", "", 404, "GET, HEAD, OPTIONS", "POST is not mapped here; this path takes GET"},
			{"GET", "/v1/orders/", "", 403, "", "has a slash at its end"},
			{"GET", "/v1/order/7", "", 403, "", "GET, DELETE, HEAD /v1/orders/{id}"},
			{"GET", "/orders", "", 404, "", "GET, HEAD, POST /v1/orders"},
			{"GET", "/v2/orders", "", 404, "", "GET, HEAD, POST /v1/orders"},
			{"GET", "/v1/ORDERS", "", 403, "", "capital letters"},
			{"POST", "/v1/talk", "", 403, "", "is mapped at the listener runtime"},
			{"POST", "/v1/hidden", "", 403, "", ""},
			{"POST", "/v1/hidden", "internal.example", 403, "GET, HEAD, OPTIONS", "this path takes GET"},
			{"GET", "/v1/elephants", "", 403, "", ""},
			{"GET", "/v1/" + strings.Repeat("a/", 400), "", 403, "", ""},
			{"OPTIONS", "/v1/orders", "", 204, "GET, HEAD, POST, OPTIONS", ""},
			{"OPTIONS", "/status", "", 204, "GET, HEAD, OPTIONS", ""},
			{"OPTIONS", "/v1/pages", "", 204, "GET, HEAD, OPTIONS", ""},
			{"OPTIONS", "/v1/elephants", "", 403, "", ""},
		} {
			req, err := http.NewRequest(c.method, s.url(c.path), nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.host != "" {
				req.Host = c.host
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			r := response{Response: res, body: readAll(t, res.Body)}
			if r.StatusCode != c.status || r.Header.Get("Allow") != c.allow || !strings.Contains(r.body, c.saying) || strings.Contains(r.body, `"details"`) != (c.saying != "") {
				t.Errorf("%s %.40s at %q: %d, Allow %q: %s", c.method, c.path, c.host, r.StatusCode, r.Header.Get("Allow"), r.body)
			}
			switch c.status {
			case 403:
				wantError(t, r, 403, "ROUTE_NOT_MAPPED")
			case 404:
				wantError(t, r, 404, "not_found")
			default:
				wantHeaders(t, r)
			}
		}
		if list := asked.take(); list != nil {
			t.Errorf("the product was asked %q", list)
		}
	}
	check()

	wantStatus(t, call(t, http.MethodOptions, s.url("/v1/own"), "", nil), 200)
	pre := call(t, http.MethodOptions, s.url("/v1/pages"), "", nil, "Origin", "https://app.example", "Access-Control-Request-Method", "GET")
	if pre.StatusCode != 200 || pre.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
		t.Errorf("a page's question: %d %v", pre.StatusCode, pre.Header)
	}
	head := call(t, http.MethodHead, s.url("/v1/orders"), "", nil)
	if head.StatusCode != 200 || head.Header.Get("X-Note") != "noted" || head.ContentLength != 6 {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
	if list := asked.take(); !slices.Equal(list, []string{"OPTIONS /v1/own", "HEAD /v1/orders"}) {
		t.Errorf("the product was asked %q", list)
	}

	control := s.child(t, "controlplane")
	if err := syscall.Kill(control, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(control, syscall.SIGCONT) }()
	check()
}

// Every GET of ours answers HEAD, with the same headers and no body.
func TestHeadOfOurOwn(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	for _, url := range []string{s.url("/v1/streams"), s.url("/v1/webhooks"), s.url("/v1/health"), s.url("/openapi.json"), s.url("/docs"),
		s.dev["SLUICE_ADMIN_URL"] + "/admin/v1/accounts", s.dev["SLUICE_ADMIN_URL"] + "/dashboard/sign-in", s.dev["SLUICE_RUNTIME_URL"] + "/v1/models"} {
		key := s.dev["SLUICE_API_KEY"]
		if strings.HasPrefix(url, s.dev["SLUICE_ADMIN_URL"]) {
			key = s.dev["SLUICE_ADMIN_KEY"]
		}
		get, head := call(t, http.MethodGet, url, key, nil), call(t, http.MethodHead, url, key, nil)
		if head.StatusCode != get.StatusCode || get.StatusCode != 200 || head.body != "" || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") ||
			head.Header.Get("Etag") != get.Header.Get("Etag") {
			t.Errorf("%s: GET %d %v, HEAD %d %v", url, get.StatusCode, get.Header, head.StatusCode, head.Header)
		}
	}
}

// readAll is the body of an answer.
func readAll(t *testing.T, body io.ReadCloser) string {
	t.Helper()
	defer body.Close()
	b, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
