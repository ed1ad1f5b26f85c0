package routehint

import (
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// shop are the routes of one listener.
func shop() string {
	var b []byte
	for _, r := range []Route{
		{Path: "/v1/streams", Methods: []string{"GET", "HEAD"}},
		{Path: "/v1/streams", Methods: []string{"POST"}},
		{Path: "/v1/streams/{id}", Methods: []string{"GET", "HEAD", "DELETE"}},
		{Path: "/v1/streams/{id}/clips", Methods: []string{"POST"}},
		{Path: "/v1/files/*", Methods: []string{"PUT"}},
		{Path: "/v1/slash/", Methods: []string{"GET", "HEAD"}},
		{Path: "/pkg.Orders/GetOrder", Methods: []string{"POST"}},
		{Path: "/v1/secret", Methods: []string{"GET", "HEAD"}, Hosts: []string{"internal.example", "*.corp.example"}},
		{Path: "/all"},
		{Path: "/v1/chat", Methods: []string{"POST"}, Listener: "runtime"},
	} {
		b = Append(b, r)
	}
	return string(b)
}

func TestFind(t *testing.T) {
	t.Parallel()
	const anywhere = "api.example"
	for _, c := range []struct {
		host, path string
		want       Hint
	}{
		{anywhere, "/v1/streams", Hint{Methods: "GET, HEAD, POST"}},
		{anywhere, "/v1/streams?x=/v1/all", Hint{Methods: "GET, HEAD, POST"}},
		{anywhere, "/v1/streams/7", Hint{Methods: "GET, HEAD, DELETE"}},
		{anywhere, "/v1/files/a/b/c", Hint{Methods: "PUT"}},
		{anywhere, "/v1/streams/", Hint{Path: "/v1/streams", Takes: "GET, HEAD, POST", Why: SlashTooMany}},
		{anywhere, "/v1/slash", Hint{Path: "/v1/slash/", Takes: "GET, HEAD", Why: SlashMissing}},
		{anywhere, "/v1/files", Hint{Path: "/v1/files/*", Takes: "PUT", Why: SlashMissing}},
		{anywhere, "/V1/Streams", Hint{Path: "/v1/streams", Takes: "GET, HEAD, POST", Why: Case}},
		{anywhere, "/v2/streams/7/clips", Hint{Path: "/v1/streams/{id}/clips", Takes: "POST", Why: Prefix}},
		{anywhere, "/streams/7", Hint{Path: "/v1/streams/{id}", Takes: "GET, HEAD, DELETE", Why: Prefix}},
		{anywhere, "/api/v1/streams", Hint{Path: "/v1/streams", Takes: "GET, HEAD, POST", Why: Prefix}},
		{anywhere, "/v1/strems/7", Hint{Path: "/v1/streams/{id}", Takes: "GET, HEAD, DELETE", Why: Spelling}},
		{anywhere, "/v1/sterams", Hint{Path: "/v1/streams", Takes: "GET, HEAD, POST", Why: Spelling}},
		{anywhere, "/v2/files/a/b", Hint{Path: "/v1/files/*", Takes: "PUT", Why: Prefix}},
		{anywhere, "/pkg.Orders/GetOrders", Hint{Path: "/pkg.Orders/GetOrder", Takes: "POST", Why: Spelling}},
		{anywhere, "/al", Hint{Path: "/all", Takes: "*", Why: Spelling}},
		{anywhere, "/v1/chat", Hint{Path: "/v1/chat", Takes: "POST", Why: Elsewhere, Listener: "runtime"}},
		{anywhere, "/v1/secret", Hint{}},
		{anywhere, "/v1/secrets", Hint{}},
		{"corp.example", "/v1/secrets", Hint{}},
		{"INTERNAL.example:8443", "/v1/secret", Hint{Methods: "GET, HEAD"}},
		{"a.b.corp.example", "/v1/secret", Hint{Methods: "GET, HEAD"}},
		{anywhere, "/v1/elephants", Hint{}},
		{anywhere, "/v9/elephants/7", Hint{}},
		{anywhere, "/", Hint{}},
		{anywhere, "*", Hint{}},
		{anywhere, "", Hint{}},
		{anywhere, "/v1/streams/" + strings.Repeat("a/", 30), Hint{}},
		{anywhere, "/v1/files/" + strings.Repeat("a", maxPath), Hint{}},
	} {
		if got := Find(shop(), c.host, c.path); got != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.host, c.path, got, c.want)
		}
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	for path, want := range map[string][2]string{
		"/v1/streams/7": {"PATCH is not mapped here; this path takes GET and DELETE", "GET, HEAD, DELETE"},
		"/v1/files/7":   {"PATCH is not mapped here; this path takes PUT", "PUT"},
		"/v1/streams/":  {"has a slash at its end that the nearest route has not", "GET, HEAD, POST /v1/streams"},
		"/al":           {"is spelled otherwise than the nearest route", "/all"},
		"/v1/chat":      {"is mapped at the listener runtime, not at this one", "POST /v1/chat"},
		"/v1/elephants": {"", ""},
	} {
		if got := Find(shop(), "h", path).Detail("PATCH"); got.Issue != want[0] || got.Expected != want[1] || (got.Field == "") != (want[0] == "") {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if d := (Hint{Methods: "GET"}).Detail(strings.Repeat("X", 1000)); len(d.Issue) > 100 {
		t.Error(d.Issue)
	}
}

// distance agrees with the plain table of all prefixes.
func TestDistance(t *testing.T) {
	t.Parallel()
	words := []string{"", "a", "ab", "ba", "abc", "acb", "streams", "strems", "sterams", "steams", "straems", "stream", "streamsxy", "xstreams", "mastres"}
	for _, a := range words {
		for _, b := range words {
			want := plain(a, b)
			if want > maxEdits {
				want = 0
			}
			if got := distance(a, b); got != want {
				t.Errorf("%q %q: %d, want %d", a, b, got, want)
			}
		}
	}
}

func plain(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0:
				d[i][j] = j
			case j == 0:
				d[i][j] = i
			default:
				d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+int(cost(a[i-1], b[j-1])))
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	var b []byte
	for range 20000 {
		b = Append(b, Route{Path: "/" + strings.Repeat("p", 100)})
	}
	if len(b) > MaxBytes || len(b) < MaxBytes-200 || b[len(b)-1] != '\n' {
		t.Error(len(b))
	}
}

// Whatever is asked of whatever text: an answer, for nothing more than what it says.
func FuzzFind(f *testing.F) {
	f.Add(shop(), "h", "/v1/streams/")
	f.Add("/a * * \n/{x}/* GET *.h,h\n", "a.h:1", "/v1//%")
	f.Fuzz(func(t *testing.T, text, host, path string) {
		Find(text, host, path).Detail("GET")
		growth.Linear(t, len(text)+len(host)+len(path), 64, 4<<10, func() { Find(text, host, path) })
	})
}

func BenchmarkFind(b *testing.B) {
	var text []byte
	for i := range 2000 {
		name := "thing" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
		text = Append(text, Route{Path: "/v1/" + name + "/{id}/parts", Methods: []string{"GET", "HEAD", "POST"}})
	}
	all := string(text)
	b.ReportMetric(float64(len(all)), "text-bytes")
	for b.Loop() {
		Find(all, "api.example", "/v1/thingzzz/7/parts")
	}
}
