package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// door is an operation of a document, as one may ask for it.
type door struct {
	base, method, path, credential string
	body                           bool
	schema                         *openapi3.Schema // of a JSON body; nil: there is none
}

// The bounds of an answer that says what is wrong.
const (
	maxAnswer  = 16 << 10
	maxDetails = 20
	maxNamed   = 100
)

// What all the inputs of one size may make all processes allocate together: so
// much for each byte that was sent, and for each request, which is what one costs
// whatever stands in it, an answer of a megabyte included; and 4 MiB for what
// processes do meanwhile by themselves.
const (
	perByte    = 64
	perRequest = 1 << 20
)

// doorSizes are the two sizes of inputs, in bytes. The larger has room for four
// times the steps, and is below every limit of bodies that are read whole.
var doorSizes = []int{12 << 10, 48 << 10}

// inputs are bodies of about n bytes. None is right for any operation.
var inputs = []struct {
	name string
	of   func(n int) string
}{
	{"names given twice", func(n int) string { return `{"name":{` + repeat(n, `"":1,`) + `"":1}}` }},
	{"names given twice under a long one", func(n int) string {
		return `{"` + repeat(n/2, "n") + `":{` + repeat(n/2, `"":1,`) + `"":1}}`
	}},
	{"unknown names", func(n int) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `"unknown%d":1,`, i)
		}
		return "{" + b.String() + `"name":1}`
	}},
	{"blanks behind", func(n int) string { return `{"name":1}` + repeat(n, " ") }},
	{"a deep body", func(n int) string { return repeat(n, `{"name":`) }},
	{"a long text", func(n int) string { return `{"title":"` + repeat(n, "x") + `","name":"` + repeat(8, "x") + `"}` }},
	{"a long number", func(n int) string { return `{"name":` + repeat(n, "9") + `}` }},
	{"lone surrogates", func(n int) string { return `{"name":"` + repeat(n, `\ud800`) + `"}` }},
	{"bytes that are no UTF-8", func(n int) string { return `{"name":"` + repeat(n, "\xff") + `"}` }},
	{"empty members", func(n int) string {
		return `{"tags":[` + repeat(n, `"",`) + `""],"scopes":[` + repeat(8, `"",`) + `""]}`
	}},
	{"commas", func(n int) string { return `{"name":[` + repeat(n, ",") + `]}` }},
	{"many messages", func(n int) string {
		return `{"model":"none","messages":[` + repeat(n, `{"role":"user","content":"a"},`) + `null]}`
	}},
	{"a form", func(n int) string { return repeat(n, "a=%ff&") }},
}

func repeat(n int, unit string) string { return strings.Repeat(unit, max(1, n/len(unit))) }

// Whatever is sent to whatever is described, the processes live, answer what is
// wrong in few words, and take memory for what was sent and no more.
func TestDoors(t *testing.T) {
	s := own(t, nil)
	doors := s.doors(t)
	if len(doors) < 150 {
		t.Fatalf("only %d operations are described", len(doors))
	}
	began := s.started(t)
	wantStatus(t, call(t, http.MethodGet, s.url("/docs/search?q=key"), "", nil), http.StatusOK) // who asks first has the index made
	was := s.bytesMade(t)
	for _, d := range doors {
		var before [2]float64
		for i, n := range doorSizes {
			sent, requests := d.knock(t, n)
			now := s.bytesMade(t)
			before[i], was = now-was, now
			if most := float64(perByte*sent + perRequest*requests + 4<<20); before[i] > most {
				t.Errorf("%s %s: %d requests of %d bytes in all took %.0f bytes, more than %.0f", d.method, d.path, requests, sent, before[i], most)
			}
		}
		// What grows with the square takes sixteen times; what does not grow is within
		// the constant.
		if before[1] > 8*before[0]+8<<20 {
			t.Errorf("%s %s: %.0f bytes became %.0f for four times the input", d.method, d.path, before[0], before[1])
		}
	}
	if now := s.started(t); now != began {
		t.Errorf("a process was replaced: %s, then %s", began, now)
	}
}

// doors are the operations of all documents.
func (s *stack) doors(t *testing.T) (list []door) {
	t.Helper()
	ids := s.things(t)
	for _, d := range []described{
		s.described(t, s.dev["SLUICE_GATEWAY_URL"], "/openapi.json", s.dev["SLUICE_API_KEY"]),
		s.described(t, s.dev["SLUICE_RUNTIME_URL"], "/openapi.json", s.dev["SLUICE_API_KEY"]),
		s.described(t, s.dev["SLUICE_ADMIN_URL"], "/admin/v1/openapi.json", s.dev["SLUICE_ADMIN_KEY"]),
	} {
		for path, item := range d.doc.Paths.Map() {
			for method, op := range item.Operations() {
				list = append(list, door{d.base, method, ids.in(method, path), s.credentialFor(path, d.credential), op.RequestBody != nil, bodyOf(op)})
			}
		}
	}
	slices.SortFunc(list, func(a, b door) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return list
}

// bodyOf is the schema of an operation's JSON body, or nil.
func bodyOf(op *openapi3.Operation) *openapi3.Schema {
	if op.RequestBody == nil {
		return nil
	}
	if m := op.RequestBody.Value.Content["application/json"]; m != nil && m.Schema != nil {
		return m.Schema.Value
	}
	return nil
}

// credentialFor is a session where a key will not do.
func (s *stack) credentialFor(path, otherwise string) string {
	if strings.HasPrefix(path, "/v1/auth/keys") || strings.HasPrefix(path, "/v1/users") {
		return s.dev["SLUICE_SESSION_TOKEN"]
	}
	return otherwise
}

// things are ids of objects that there are, by the beginning of their paths.
type things map[string]string

func (s *stack) things(t *testing.T) things {
	t.Helper()
	gateway, key := s.dev["SLUICE_GATEWAY_URL"], s.dev["SLUICE_API_KEY"]
	made := func(path, credential string, body any) string {
		r := call(t, "POST", gateway+path, credential, body)
		wantStatus(t, r, http.StatusCreated)
		return into[struct{ ID string }](t, r).ID
	}
	accounts := into[struct{ Data []struct{ ID string } }](t, call(t, "GET", s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts", s.dev["SLUICE_ADMIN_KEY"], nil))
	return things{
		"/v1/streams/":   made("/v1/streams", key, map[string]any{"title": "a", "protocol": "rtmp"}),
		"/v1/auth/keys/": made("/v1/auth/keys", s.dev["SLUICE_SESSION_TOKEN"], map[string]any{"name": "k", "scopes": []string{"streams:read"}}),
		"/v1/webhooks/":  made("/v1/webhooks", key, map[string]any{"url": "https://a.example/", "events": []string{"stream.started"}, "secret": "a-secret-of-sixteen-bytes-or-more"}),
		"/v1/events/schedules/": made("/v1/events/schedules", key, map[string]any{"name": "n", "type": "custom",
			"schedule": map[string]any{"type": "recurring", "cron": "@yearly"}}),
		"/admin/v1/accounts/": accounts.Data[0].ID,
		"/admin/v1/routes/":   "streams.list", "/admin/v1/classes/": "default", "/admin/v1/products/": "media", "/admin/v1/plans/": "local",
	}
}

// in fills the variables of a path: with an object that there is, unless it would
// be removed.
func (ids things) in(method, path string) string {
	id := "none"
	for beginning, known := range ids {
		if method != http.MethodDelete && strings.HasPrefix(path, beginning) {
			id = known
		}
	}
	for {
		from, to := strings.IndexByte(path, '{'), strings.IndexByte(path, '}')
		if from < 0 || to < from {
			return path
		}
		path, id = path[:from]+id+path[to+1:], "none"
	}
}

// knock sends everything of size n, and returns how many bytes that was, in how
// many requests.
func (d door) knock(t *testing.T, n int) (sent, requests int) {
	t.Helper()
	try := func(what, query, body string, header http.Header) {
		sent += len(query) + len(body) + 200
		requests++
		if err := d.ask(query, body, header); err != nil {
			t.Errorf("%s %s, %s, %d bytes: %v", d.method, d.path, what, n, err)
		}
	}
	short := min(n, 24<<10) / 4 // an edge takes a few ten thousand bytes of headers, the address included
	try("a long query", "?q="+repeat(short, "x"), "", nil)
	try("a query of many names", "?"+repeat(short, "a=&"), "", nil)
	try("a query that is no UTF-8", "?q=%ff&limit=%ff&cursor=%c3%28", "", nil)
	try("numbers that are none", "?limit="+repeat(short, "9")+"&offset=-1", "", nil)
	try("a long header", "", "", http.Header{"Idempotency-Key": {repeat(short, "k")}, "If-Match": {repeat(short/2, `"a",`)}})
	if !d.body {
		return sent, requests
	}
	for _, in := range inputs {
		try(in.name, "", in.of(n), http.Header{"Content-Type": {"application/json"}})
	}
	try("a form", "", repeat(n, "a=%ff&"), http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	return sent, requests
}

// ask makes one request. It fails when the answer is none, is a failure of ours,
// or says at length what is wrong.
func (d door) ask(query, body string, header http.Header) error {
	req, err := http.NewRequest(d.method, d.base+d.path+query, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, v := range header {
		req.Header[name] = v
	}
	req.Header.Set("Authorization", "Bearer "+d.credential)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 400 {
		return nil // a stream may have no end
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	switch {
	case err != nil:
		return err
	case res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented && res.StatusCode != http.StatusServiceUnavailable:
		return fmt.Errorf("%s: %.300s", res.Status, text)
	case len(text) > maxAnswer:
		return fmt.Errorf("%s in %d bytes: %.300s", res.Status, len(text), text)
	}
	var e envelope
	if json.Unmarshal(text, &e) != nil {
		return nil // pages for people, and errors in the words of other protocols
	}
	if len(e.Error.Details) > maxDetails {
		return fmt.Errorf("%d details", len(e.Error.Details))
	}
	for _, f := range e.Error.Details {
		if len(f.Field) > maxNamed {
			return fmt.Errorf("a field of %d bytes: %s", len(f.Field), f.Field)
		}
	}
	return nil
}

// counters reads a metric of each process.
func (s *stack) counters(t *testing.T, name string) (values []string) {
	t.Helper()
	for _, part := range []string{"ADMIN_ADDR", "RUNTIME_LISTEN", "MEDIA_LISTEN", "WORKER_LISTEN"} {
		_, rest, ok := strings.Cut(scrape(t, "http://"+s.env["SLUICE_"+part]+"/metrics"), "\n"+name+" ")
		value, _, _ := strings.Cut(rest, "\n")
		if !ok {
			t.Fatalf("%s shows no %s", part, name)
		}
		values = append(values, value)
	}
	return values
}

// started says when each process began.
func (s *stack) started(t *testing.T) string {
	t.Helper()
	return strings.Join(s.counters(t, "process_start_time_seconds"), " ")
}

// bytesMade is how many bytes all processes have allocated since they began.
func (s *stack) bytesMade(t *testing.T) (sum float64) {
	t.Helper()
	for _, v := range s.counters(t, "go_memstats_alloc_bytes_total") {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// wrong is a body for an operation, with fields of no name and a value of the wrong type
// for each of some that it has, and the fields that an answer to it names.
func (d door) wrong() (body map[string]any, fields []string) {
	body = map[string]any{"no_such_field": 1, "nor_this_one": true}
	if !strings.HasPrefix(d.path, "/x402/") { // which takes what other versions of the protocol have
		fields = []string{"no_such_field", "nor_this_one"}
	}
	for _, name := range slices.Sorted(maps.Keys(d.schema.Properties)) {
		kinds := d.schema.Properties[name].Value.Type
		switch {
		case kinds == nil || len(body) > 6:
		case kinds.Includes("string"), kinds.Includes("array"), kinds.Includes("object"):
			body[name] = 7
		case kinds.Includes("integer"), kinds.Includes("number"), kinds.Includes("boolean"):
			body[name] = "x"
		}
		if _, there := body[name]; there || slices.Contains(d.schema.Required, name) {
			fields = append(fields, name)
		}
	}
	return body, fields
}

// All that is wrong with a body is named in one answer: what has no such name, what is of
// the wrong type and what is missing. And one that is compressed is refused by name.
func TestAllFaultsOfABodyAtOnce(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	asked, packed, absent := 0, 0, 0
	pace := time.NewTicker(100 * time.Millisecond) // of an account's failures the request log keeps 20 a second, which tests beside this one look for
	defer pace.Stop()
	for _, d := range s.doors(t) {
		if d.body {
			<-pace.C
			packed += d.refusesPacked(t)
		}
		if !d.body && strings.Contains(d.path, "/none") && !strings.HasPrefix(d.path, "/docs/") && !strings.HasPrefix(d.path, "/v1/playback/") { // which are for people and players
			<-pace.C
			absent += d.namesWhatIsAbsent(t)
		}
		if d.schema == nil || d.schema.Properties == nil || d.schema.AdditionalProperties.Schema != nil || d.schema.AdditionalProperties.Has != nil && *d.schema.AdditionalProperties.Has {
			continue
		}
		body, fields := d.wrong()
		<-pace.C
		r := call(t, d.method, d.base+d.path, d.credential, body)
		if r.StatusCode != http.StatusBadRequest {
			t.Logf("%s %s: %d %.200s", d.method, d.path, r.StatusCode, r.body)
			continue // there is no such object, or the operation is not here
		}
		var said envelope
		if json.Unmarshal([]byte(r.body), &said) != nil {
			continue // errors in the words of other protocols
		}
		asked++
		for _, f := range fields {
			named := false
			for _, x := range said.Error.Details {
				named = named || x.Field == f && x.Expected != ""
			}
			if !named {
				t.Errorf("%s %s: %s is not named: %.1000s", d.method, d.path, f, r.body)
			}
		}
	}
	if asked < 40 {
		t.Errorf("only %d operations were asked", asked)
	}
	if absent < 40 {
		t.Errorf("only %d operations said what is not there", absent)
	}
	if packed < 80 {
		t.Errorf("only %d operations refused a body that is compressed", packed)
	}
}

// namesWhatIsAbsent asks for a thing that is called none: 1 if the answer says that it is
// not there, by its name, 0 if something comes before that.
func (d door) namesWhatIsAbsent(t *testing.T) int {
	t.Helper()
	r := call(t, d.method, d.base+d.path, d.credential, nil)
	var said envelope
	if r.StatusCode != http.StatusNotFound || json.Unmarshal([]byte(r.body), &said) != nil || said.Error.Code == "" {
		return 0
	}
	if !strings.Contains(said.Error.Message, " none") {
		t.Errorf("%s %s: %s", d.method, d.path, r.body)
	}
	return 1
}

// refusesPacked sends a body that says it is compressed, which no operation reads: 1 if it
// was refused by the name of its encoding, 0 if it was refused for what comes before that.
func (d door) refusesPacked(t *testing.T) int {
	t.Helper()
	r := call(t, d.method, d.base+d.path, d.credential, map[string]any{}, "Content-Encoding", "gzip")
	switch {
	case r.StatusCode == http.StatusUnsupportedMediaType && strings.Contains(r.body, `"field":"Content-Encoding","issue":"is gzip"`):
		return 1
	case r.StatusCode == http.StatusForbidden, r.StatusCode == http.StatusUnauthorized, r.StatusCode == http.StatusPaymentRequired, r.StatusCode == http.StatusTooManyRequests:
		t.Logf("%s %s: %d %.200s", d.method, d.path, r.StatusCode, r.body)
	default:
		t.Errorf("%s %s, with Content-Encoding: gzip: %d %.300s", d.method, d.path, r.StatusCode, r.body)
	}
	return 0
}
