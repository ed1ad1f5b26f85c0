package resources

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// Headers are changed in both directions; what a template names comes from the
// request, and nothing of the caller's own takes its place.
func TestHeaderEditsInARealEnvoy(t *testing.T) {
	t.Parallel()
	show := func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Gone"], w.Header()["X-Both"] = []string{"1"}, []string{"product"}
		for _, name := range []string{"X-Set", "X-Id", "X-Account", "X-Add", "X-Note", "X-Address", "X-Request"} {
			fmt.Fprintf(w, "%s=%s\n", name, strings.Join(r.Header.Values(name), "+"))
		}
	}
	url := serving(t, []service{{"show", "", show}},
		config.Route{Name: "edited", Path: "/v1/things/{id}/of/{owner}/*",
			RequestHeaders: &config.HeaderEdit{
				Set: map[string]string{"X-Set": "100% {{sure}}", "X-Id": "{owner}/{id}", "X-Account": "{account.id}", "X-Address": "{client.address}", "X-Request": "{request.id}"},
				Add: map[string]string{"x-add": "two"}, Remove: []string{"x-note"}},
			ResponseHeaders: &config.HeaderEdit{Set: map[string]string{"x-thing": "{id}", "x-request": "{request.id}"}, Add: map[string]string{"x-both": "edge"}, Remove: []string{"x-gone"}}},
		config.Route{Name: "plain", Path: "/v1/plain"},
		config.Route{Name: "here", Path: "/v1/here/{id}", Respond: &config.Respond{Status: 200, Body: "{}"}, ResponseHeaders: &config.HeaderEdit{Set: map[string]string{"x-thing": "{id}"}}},
	)
	sent := []string{"X-Set", "mine", "X-Id", "mine", "X-Account", "acct_forged", "X-Add", "one", "X-Note", "note"}
	res, body := request(t, "GET", url+"/v1/things/a%20b/of/me/and/more?x=/v1/things/z", nil, sent...)
	id := res.Header.Get("X-Request-Id")
	want := "X-Set=100% {sure}\nX-Id=me/a%20b\nX-Account=\nX-Add=one+two\nX-Note=\nX-Address=127.0.0.1\nX-Request=" + id + "\n"
	if body != want {
		t.Errorf("the product got\n%swant\n%s", body, want)
	}
	h := res.Header
	if h.Get("X-Gone") != "" || fmt.Sprint(h.Values("X-Both")) != "[product edge]" || h.Get("X-Thing") != "a%20b" || h.Get("X-Request") != id || id == "" {
		t.Errorf("the caller got %v", h)
	}
	if res, body := request(t, "GET", url+"/v1/plain", nil, sent...); !strings.Contains(body, "X-Account=acct_forged") || res.Header.Get("X-Gone") != "1" || res.Header.Get("X-Thing") != "" {
		t.Errorf("a route without: %v %s", res.Header, body)
	}
	if res, _ := request(t, "GET", url+"/v1/here/7", nil); res.Header.Get("X-Thing") != "7" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("an answer of the edge: %v", res.Header)
	}
}

// Callers are sent where the route says, with their query, and nowhere else.
func TestRedirectsInARealEnvoy(t *testing.T) {
	t.Parallel()
	url := serving(t, []service{{"svc", "", naming("svc")}},
		config.Route{Name: "moved", Path: "/old/{a}/in/{b}", Redirect: &config.Redirect{Scheme: "https", Host: "new.example:8443", Path: "/new/{b}/{a}", Status: 301}},
		config.Route{Name: "host", Path: "/host/*", Redirect: &config.Redirect{Host: "new.example"}},
		config.Route{Name: "prefix", Path: "/pre/*", Redirect: &config.Redirect{Host: "new.example", Prefix: "/v2", Status: 308}},
		config.Route{Name: "secure", Path: "/secure", Hosts: []string{"own.example"}, Redirect: &config.Redirect{Scheme: "https", Status: 302}},
	)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, c := range []struct {
		path, host string
		status     int
		to         string
	}{
		{"/old/1/in/2?q=a%20b", "", 301, "https://new.example:8443/new/2/1?q=a%20b"},
		{"/host/a/b?c", "evil.example", 307, "http://new.example/host/a/b?c"},
		{"/host//evil.example/%2e%2e/", "", 307, "http://new.example/host/"},
		{"/pre/a", "", 308, "http://new.example/v2/a"},
		{"/secure?x=1", "own.example", 302, "https://own.example/secure?x=1"},
		{"/secure", "evil.example", 404, ""},
	} {
		r, err := http.NewRequest("POST", url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = c.host
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := res.Header.Get("Location"); res.StatusCode != c.status || got != c.to || res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s at %q: %d %s, want %d %s", c.path, c.host, res.StatusCode, got, c.status, c.to)
		}
	}
}

// Texts that are long enough are compressed as the client asks, and nothing else is;
// events arrive one by one.
func TestCompressionInARealEnvoy(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("all work and no play ", 500)
	next := make(chan struct{})
	answer := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.Header().Set("ETag", `"1"`)
		switch r.URL.Query().Get("as") {
		case "short":
			fmt.Fprint(w, text[:100])
		case "events":
			for i := range 2 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-next
			}
		case "packed":
			w.Header().Set("Content-Encoding", "br")
			fmt.Fprint(w, text)
		default:
			fmt.Fprint(w, text)
		}
	}
	url := serving(t, []service{{"texts", "", answer}},
		config.Route{Name: "packed", Path: "/packed", Compress: true},
		config.Route{Name: "plain", Path: "/plain"},
	)
	t.Cleanup(func() { close(next) }) // before the products end
	for _, c := range []struct{ what, path, accept, encoding string }{
		{"JSON", "/packed?type=application/json", "gzip", "gzip"},
		{"with a character set", "/packed?type=text/html%3B+charset=utf-8", "gzip", "gzip"},
		{"brotli", "/packed?type=text/plain", "br, gzip;q=0.5", "br"},
		{"zstd", "/packed?type=text/plain", "zstd", "zstd"},
		{"the best of all", "/packed?type=text/plain", "gzip, br, zstd", "zstd"},
		{"none wanted", "/packed?type=text/plain", "identity", ""},
		{"a picture", "/packed?type=image/png", "gzip", ""},
		{"short", "/packed?type=text/plain&as=short", "gzip", ""},
		{"compressed already", "/packed?type=text/plain&as=packed", "gzip", "br"},
		{"a route that does not ask", "/plain?type=text/plain", "gzip", ""},
	} {
		res, body := request(t, "GET", url+c.path, nil, "Accept-Encoding", c.accept)
		ours := c.encoding != "" && !strings.Contains(c.path, "as=packed")
		etag := map[bool]string{true: `W/"1"`, false: `"1"`}[ours]
		if res.Header.Get("Content-Encoding") != c.encoding || res.Header.Get("ETag") != etag || ours != (len(body) < len(text)/10 && !strings.Contains(c.path, "short")) ||
			res.Header.Get("X-Ratelimit-Limit") == "" || ours && res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d bytes, %v", c.what, len(body), res.Header)
		}
		if c.encoding != "gzip" {
			continue
		}
		if z, err := gzip.NewReader(strings.NewReader(body)); err != nil {
			t.Error(err)
		} else if b, err := io.ReadAll(z); err != nil || string(b) != text {
			t.Errorf("%s: %v: other text came out", c.what, err)
		}
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /packed?type=text/event-stream&as=events HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
	in := bufio.NewReader(c)
	for i := range 2 { // the second is not sent before the first is here
		for line := ""; line != fmt.Sprintf("data: %d\n", i); {
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		next <- struct{}{}
	}
}
