package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
	"sluice.dev/sluice/controlplane/accounts/keyfile"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/controlplane/gateway/certificates"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/issuers"
	"sluice.dev/sluice/controlplane/gateway/kong"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/openapi/importer"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/mcpserver"
	"sluice.dev/sluice/platform/http/webpage"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/web/mcp/toolset"
	"sluice.dev/sluice/workers/cron"
	"sluice.dev/sluice/workers/cron/croncli"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/product"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/catalogue"
	"sluice.dev/sluice/workers/webhooks/retry"
	"sluice.dev/sluice/workers/webhooks/sender"
	"sluice.dev/sluice/workers/webhooks/signature"
)

var (
	now    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	silent = slog.New(slog.DiscardHandler)
)

// body is what handlers read of JSON.
type body struct {
	Name string            `json:"name"`
	Tags []string          `json:"tags"`
	Map  map[string]string `json:"map"`
	Any  any               `json:"any"`
	List []struct {
		N int `json:"n"`
	} `json:"list"`
}

const aSchedule = `{"name":"n","type":"webhook","schedule":{"type":"recurring","cron":"@daily"},"webhook":{"url":"https://a.example"},`

// documents are the rows of bodies and files.
func documents() []parser {
	anyURL := func(string) error { return nil }
	return []parser{
		{name: "platform/http/httpapi: Unmarshal", read: func(in []byte) error { return httpapi.Unmarshal(in, new(body)) },
			forms: in(`{"any":%s}`, `{"name":%s}`, `{"tags":%s}`, `{"map":%s}`, `{"list":%s}`)},
		{name: "platform/http/httpapi: CheckJSON", read: details(httpapi.CheckJSON), forms: in("[%s,1]"), multiple: 24, constant: 64 << 10},
		{name: "controlplane/gateway/config: ParseJSON, Expand, Faults", read: func(in []byte) error {
			d, err := config.ParseJSON(in)
			if err == nil {
				d, _ = d.Expand(config.ProfileGateway)
				err = d.Validate()
			}
			return err
		}, forms: append(in(`{"routes":%s}`, `{"classes":%s,"plans":[{"name":"a","limits":{}}]}`, `{"plans":[{"name":"a","limits":%s}]}`, `{"plans":[{"name":"a","products":%s}]}`,
			`{"routes":[{"name":"a","path":"/a","methods":%s}]}`, `{"routes":[{"name":"a","path":%s}]}`, `{"issuers":[{"scope_map":%s}]}`), objects...), multiple: 1 << 10},
		{name: "controlplane/gateway/config: TooDeep", read: quietly(func(in []byte) { config.TooDeep(in) }),
			forms: append(in(`{"routes":%s}`), texts("a: '%s'", `a: "%s"`, `- [ "%s", "`, "a %s\n- \"")...)},
		{name: "controlplane/gateway/config: ParsePath", read: quietly(func(in []byte) { _, _ = config.ParsePath(string(in)) }), forms: texts("/v1/%s", "/%s/*"), n: 128},
		{name: "controlplane/gateway/config: ParseTemplate", read: quietly(func(in []byte) { _, _ = config.ParseTemplate(string(in)) }), forms: texts("%s", "a{id}%s"), n: 128},
		{name: "controlplane/gateway/openapi/document: Read", read: quietly(func(in []byte) {
			if d, err := document.Read(in, nil); err == nil {
				d.OpenAPI("", d.Operations)
			}
		}), forms: append(in(`{"openapi":"3.0.0","paths":%s}`, `{"swagger":"2.0","paths":{"/a":{"get":{"parameters":%s}}}}`,
			`{"openapi":"3.1.0","paths":{"/a":{"get":{"responses":{"200":{"content":{"a/b":{"schema":%s}}}}}}}}`), texts("openapi: 3.0.0\npaths: {/a: {get: {summary: %s}}}")...), multiple: 4 << 10, constant: 512 << 10},
		referencePages(),
		searched(),
		{name: "controlplane/gateway/openapi/importer: Import", read: quietly(func(in []byte) {
			if d, err := document.Read(in, nil); err == nil {
				_, _ = importer.Import(d, importer.Options{Upstream: "http://127.0.0.1:1", Checks: importer.Checks{On: true}})
			}
		}), forms: in(`{"openapi":"3.1.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":%s}}}}}}}`, `{"swagger":"2.0","paths":{"/a/{b}":{"get":{"parameters":%s}}}}`,
			`{"openapi":"3.0.0","paths":{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}}}}},"components":{"schemas":{"A":{"allOf":%s}}}}`),
			multiple: 8 << 10, constant: 1 << 20},
		{name: "web/mcp/toolset: From", read: quietly(func(in []byte) { _, _ = toolset.From(in) }),
			forms: valid(in(`{"paths":{"/a":{"post":{"operationId":"a","security":[{"key":[]}],"responses":{"200":{}},"requestBody":{"content":{"application/json":{"schema":%s}}}}}}}`,
				`{"paths":{"/a":{"parameters":%s,"get":{"operationId":"a","security":[{"key":[]}],"responses":{"200":{}}}}}}`)), multiple: 256},
		{name: "web/mcp/toolset: Request", read: details(func(in []byte) []decision.Detail { _, bad := tool.Request(in); return bad }),
			forms: in(`{"id":%s}`, `{"id":"a","name":%s}`, `{"id":"a","tag":%s}`), multiple: 128},
		{name: "web/mcp/toolset: Show", read: quietly(func(in []byte) { _, _ = toolset.Show(in, []string{"data.id", "a"}, 32<<10) }),
			forms: in(`{"data":%s}`, `[%s]`, `{"a":%s}`), multiple: 64, constant: 128 << 10},
		{name: "platform/http/mcpserver: POST /mcp", read: served(mcp(), func(in []byte) *http.Request { return post(in, "application/json") }),
			forms: in(`{"jsonrpc":"2.0","id":1,"method":"ping","params":%s}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}%s`, `[%s]`, `{"jsonrpc":"2.0","id":%s,"method":"ping"}`), multiple: 256, constant: 512 << 10},
		{name: "workers/schedules/definition: Complete", read: func(in []byte) error {
			var d definition.Definition
			if err := httpapi.Unmarshal(in, &d); err != nil {
				return err
			}
			_, err := d.Complete(anyURL)
			return err
		}, forms: in(aSchedule+`"tags":%s}`, aSchedule+`"retryPolicy":%s}`, `{"name":"n","type":"webhook","webhook":{"headers":%s}}`,
			`{"name":"n","webhook":{"payload":%s}}`, `{"name":%s}`, `{"schedule":{"cron":%s}}`, `{"action":{"settings":%s}}`)},
		{name: "workers/schedules/definition: ParsePatch, Apply", read: func(in []byte) error {
			p, err := definition.ParsePatch(in)
			if err != nil {
				return err
			}
			_, err = p.Apply(definition.Definition{})
			return err
		}, forms: in(`{"webhook":{"payload":%s}}`, `{"schedule":%s}`, `{"name":%s}`), multiple: 160},
		{name: "controlplane/gateway/requestlog: ParseBatch", read: func(in []byte) error { _, err := requestlog.ParseBatch(in, now); return err },
			forms: in(`{"edge":"e","requests":%s}`, `{"edge":"e","requests":[{"id":"1","path":%s}]}`, `{"edge":"e","requests":[{"id":"1","scopes":%s}]}`, `{"edge":"e","dropped":%s}`), multiple: 512},
		edgeLines(), recordedBlocks(),
		{name: "controlplane/gateway/issuers: Parse", read: quietly(func(in []byte) { _, _ = issuers.Parse(in) }), forms: in(`{"keys":%s}`, `{"keys":[{"kid":%s}]}`, `{"x":%s}`), multiple: 192},
		{name: "controlplane/accounts/seed: ParseEnv", read: quietly(func(in []byte) { _, _ = seed.ParseEnv(bytes.NewReader(in)) }), forms: lines("", "A=1\n", "A='2'\n", "export A=\n")},
		{name: "controlplane/accounts/keyfile: Read", read: func(in []byte) error {
			return keyfile.Read(bytes.NewReader(in), "", func(_ keyfile.Row, err error) error { return nil })
		}, forms: append(lines("sha256,name\n", "a,b\n", "\"a\"\"b\",c\n", "\n"), in(`{"key":%s}`, `{"scopes":%s}`, `{"expires_at":%s}`)...), multiple: 512, constant: 128 << 10},
		{name: "controlplane/gateway/kong: Import", read: func(in []byte) error { _, err := kong.Import(in, now); return err },
			forms: kongFiles, n: 8 << 10, multiple: 16 << 10, constant: 8 << 20},
		{name: "workers/cron/croncli: Batch", read: quietly(func(in []byte) { croncli.Batch(bytes.NewReader(in), io.Discard, io.Discard) }),
			forms: append(in(`{"tz":"UTC","expr":%s,"from":"x"}`), lines("", `{"tz":"UTC","expr":"* * * * *","from":"2026-01-01T00:00:00Z"}`+"\n", "{}\n")...), multiple: 512},
		{name: "workers/webhooks: Body", read: quietly(func(in []byte) {
			_, _ = webhooks.Body(events.Event{ID: "evt_1", Type: "a", Time: now, Data: map[string]any{"k": string(in)}})
		}), forms: texts()},
		{name: "workers/payments: ReadOrder", read: func(in []byte) error {
			_, err := payments.ReadOrder(httptest.NewRecorder(), post(in, "application/json"))
			return err
		}, forms: in(`{"paymentPayload":%s}`, `{"paymentPayload":{"x402Version":1,"payload":%s}}`, `{"paymentRequirements":%s}`, `{"paymentRequirements":{"maxAmountRequired":%s}}`)},
		{name: "platform/http/identity: Direct", read: served(identity.Direct([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})(http.NotFoundHandler()), func(in []byte) *http.Request {
			r := post(nil, "")
			r.RemoteAddr = "192.0.2.1:1"
			r.Header.Set("X-Forwarded-For", string(in))
			return r
		}), forms: texts("%s,192.0.2.1", "192.0.2.1%s")},
	}
}

// objects are documents with many small objects in each list.
var objects = []shape{
	around("many routes", `{"routes":[{}`, `,{}`, "]}"), around("many plans", `{"plans":[{}`, `,{}`, "]}"), around("many products", `{"products":[{}`, `,{}`, "]}"),
	around("many routes that are alike", `{"routes":[{"name":"a","path":"/a"}`, `,{"name":"a","path":"/a"}`, "]}"),
	{"many hosts and methods", func(n int) []byte {
		return []byte(`{"routes":[{"name":"a","path":"/a","hosts":["a"` + numbered(n/2, `,"h%d"`) + `],"methods":["GET"` + numbered(n/2, `,"M%d"`) + `]}]}`)
	}},
	{"many products of plans", func(n int) []byte {
		return []byte(`{"products":[{"name":"p0"}` + numbered(n/2, `,{"name":"p%d"}`) + `],"plans":[{"name":"a","products":["a"` + numbered(n/2, `,"p%d"`) + `]}]}`)
	}},
}

// kongFiles are Kong's with much of one thing.
var kongFiles = []shape{
	around("many services", `{"_format_version":"3.0","services":[{"url":"http://a","routes":[{"paths":["/a"]}]}`, `,{"url":"http://a","routes":[{"paths":["/a"]}]}`, "]}"),
	{"many paths", func(n int) []byte {
		return []byte(`{"_format_version":"3.0","services":[{"url":"http://a","routes":[{"paths":["/a"]}` + numbered(n, `,{"name":"a","paths":["/a%d/b"]}`) + "]}]}")
	}},
	{"many consumers in groups", func(n int) []byte {
		return []byte(`{"_format_version":"3.0","consumers":[{}` + numbered(n, `,{"username":"a%[1]d","acls":[{"group":"g%[1]d"}],"keyauth_credentials":[{"key":"k-%[1]d-Wm4yH7cQ1sVb6NgEk0Zt"}]}`) + "]}")
	}},
	around("many plugins", `{"_format_version":"3.0","services":[{"url":"http://a","routes":[{"paths":["/a"]}]}],"plugins":[{"name":"a"}`, `,{"name":"acl"}`, "]}"),
	around("many unknown fields", `{"_format_version":"3.0","a":[{}`, `,{"b":1}`, "]}"),
}

// parameters are the rows of queries, forms and headers.
func parameters() []parser {
	client := rules.Client{RedirectURIs: []string{"https://a.example/cb", "http://127.0.0.1/cb"}, Scopes: []string{"streams:read", "users:read"}}
	box, err := secretbox.New("a-secret-that-is-long-enough-for-a-box-of-this-kind")
	if err != nil {
		panic(err)
	}
	return []parser{
		{name: "platform/http/httpapi: Text", read: served(quiet.Text(http.NotFoundHandler()), func(in []byte) *http.Request {
			return &http.Request{Method: "GET", URL: &url.URL{Path: string(in), RawQuery: string(in)}, Header: http.Header{}}
		}), forms: texts("a=%s", "%s=%%ff")},
		{name: "workers/cron: Parse", read: quietly(func(in []byte) { _, _ = cron.Parse(string(in)) }), forms: texts("%s * * * *", "* * %s * *", "0 %s"), n: 60},
		{name: "workers/cron: LoadZone", read: quietly(func(in []byte) { _, _ = cron.LoadZone(string(in)) }), forms: texts("Europe/%s"), n: 60},
		{name: "platform/http/webpage: Wanted", read: quietly(func(in []byte) {
			webpage.Wanted(&http.Request{URL: new(url.URL), Header: http.Header{"Accept": {string(in)}}})
		}), forms: texts("text/html;%s", "text/html;q=0.%s", "text/html, %s")},
		{name: "platform/http/paging: Parse", read: query(func(q url.Values) error { _, bad := accounts.List.Parse(q); return invalid(bad) }),
			forms: texts("limit=%s", "limit=1&offset=%s", "cursor=%s", "name=%s", "sort=%s", "created_after=%s")},
		{name: "controlplane/gateway/requestlog: ParseFilter", read: query(func(q url.Values) error { _, err := requestlog.ParseFilter(q); return err }), forms: texts("status=%s", "cursor=1.%s", "route=%s", "since=%s")},
		{name: "controlplane/accounts/billing: ParsePeriod", read: query(func(q url.Values) error { _, err := billing.ParsePeriod(q, now); return err }), forms: texts("from=%s", "period=%s")},
		{name: "controlplane/accounts/billing: ParseDate", read: quietly(func(in []byte) { _, _ = billing.ParseDate(string(in)) }), forms: texts("2026-%s")},
		{name: "controlplane/accounts/billing/price: ParseAmount", read: quietly(func(in []byte) { _, _ = price.ParseAmount(string(in)) }), forms: texts("0.%s", "1%s")},
		{name: "platform/outbound: CheckHeader", read: quietly(func(in []byte) { _ = outbound.CheckHeader(string(in), "v"); _ = outbound.CheckHeader("A", string(in)) }), forms: texts("X-%s")},
		{name: "platform/outbound: CheckURL", read: quietly(func(in []byte) { _ = outbound.New(outbound.Config{}).CheckURL(gone, string(in)) }), forms: texts("https://%s", "https://192.0.2.1/%s"), constant: 512 << 10},
		{name: "controlplane/edgesync/keyfeed: GET", read: served(feeder(), func(in []byte) *http.Request {
			return &http.Request{Method: "GET", URL: &url.URL{RawQuery: string(in)}, Header: http.Header{}}
		}), forms: texts("position=x&%s")[len(signs)+1:]},
		{name: "platform/http/idempotency: Wrap", read: served(repeatable(), func(in []byte) *http.Request {
			r := post(nil, "application/json")
			r.Header.Set(idempotency.Header, string(in))
			return r.WithContext(identity.With(r.Context(), identity.Caller{Account: "acct_1"}))
		}), forms: texts()},
		{name: "controlplane/accounts/oauth/rules: Authorize", read: quietly(func(in []byte) {
			if f, bad := rules.ParseForm(string(in)); bad == nil {
				_, _, _ = rules.Redirect(f, client)
				_, _ = rules.Authorize(f, client)
			}
		}), forms: texts("response_type=code&scope=%s", "redirect_uri=%s", "code_challenge_method=S256&code_challenge=%s", "state=%s"), n: 2 << 10},
		{name: "controlplane/accounts/oauth/rules: RedirectMatches, RedirectFault, WithQuery", read: quietly(func(in []byte) {
			rules.RedirectMatches(client.RedirectURIs, string(in))
			if rules.RedirectFault(string(in)) == "" {
				rules.WithQuery(string(in), [2]string{"state", string(in)})
			}
		}), forms: texts("http://127.0.0.1:%s", "https://a.example/%s")},
		{name: "controlplane/accounts/oauth/rules: ClientCredentials", read: quietly(func(in []byte) { _, _ = rules.ClientCredentials(string(in), rules.Form{}) }), forms: texts("Basic %s", "Basic YTpi%s")},
		{name: "controlplane/accounts/oauth/rules: Narrow", read: quietly(func(in []byte) { _, _ = rules.Narrow(client.Scopes, string(in)) }), forms: texts("streams:%s", "streams:read %s")},
		{name: "workers/webhooks/retry: ParseAfter", read: quietly(func(in []byte) { retry.ParseAfter(string(in), now) }), forms: texts("Sun, %s")},
		{name: "workers/webhooks/signature: Verify", read: quietly(func(in []byte) {
			h := http.Header{}
			signature.Set(h, [][]byte{secret}, "evt_1", now, nil)
			for name := range h {
				h[name] = []string{string(in)}
			}
			_ = signature.Verify(secret, h, in, now)
			_ = signature.VerifyBody(secret, []string{string(in)}, in)
		}), forms: texts("v1,%s", "sha256=%s", "t=1,v1=%s")},
		{name: "platform/storage/secretbox: Open", read: quietly(func(in []byte) { _, _ = box.Open(in, "row") }), forms: texts("\x01%s")},
		{name: "controlplane/gateway/certificates: ReadPair", read: quietly(func(in []byte) { _, _ = certificates.ReadPair(in, in, now) }),
			forms: texts("-----BEGIN CERTIFICATE-----\n%s", "-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"), multiple: 200, constant: 256 << 10, n: 8 << 10},
		{name: "workers/webhooks/catalogue: Known", read: quietly(func(in []byte) { catalogue.Known(string(in)) }), forms: texts("stream.%s")},
		{name: "controlplane/accounts/sessions: Verify", read: quietly(func(in []byte) {
			defer func() { _ = recover() }() // there is no database to ask for the key of a token that is one
			_, _ = sessions.New(sessions.Config{Issuer: "i", Audience: "a"}).Verify(gone, string(in))
		}), forms: texts("eyJhbGciOiJFUzI1NiJ9.%s.sss"), constant: 512 << 10, n: 2 << 10},
	}
}

// answering is a transport whose answer is the input.
type answering struct {
	body        []byte
	contentType string
}

// RoundTrip answers.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {a.contentType}}, Body: io.NopCloser(bytes.NewReader(a.body)), Request: r}, nil
}

// Do is RoundTrip for webhooks.
func (a answering) Do(context.Context, outbound.Request) (outbound.Result, error) {
	return outbound.Result{Status: 200, Header: http.Header{"Retry-After": {string(a.body)}}, Body: a.body}, nil
}

// CheckURL takes any.
func (answering) CheckURL(context.Context, string) error { return nil }

// products are the rows of answers to our own calls.
func products() []parser {
	return []parser{
		{name: "workers/schedules/product: Act", read: quietly(func(in []byte) {
			c := product.Client{BaseURL: "http://product", Secret: secret, HTTP: &http.Client{Transport: answering{in, "application/json"}}}
			_, _ = c.Act(context.Background(), product.Caller{Account: "acct_1"}, definition.Action{StreamID: "strm_1", Action: "start"})
		}), forms: in(`{"stream_id":%s}`, `{"message":%s}`)},
		{name: "workers/webhooks/sender: Send", read: quietly(func(in []byte) {
			sender.Send(context.Background(), answering{body: in}, sender.Request{URL: "https://a.example", EventID: "e", At: now}, func() time.Time { return now })
		}), forms: texts()},
	}
}

// gone is the context of a caller who has left: nothing is asked of a network.
var gone = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func post(body []byte, contentType string) *http.Request {
	r := httptest.NewRequest("POST", "/", bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return r
}

func mcp() http.Handler {
	server := mcpserver.NewServer(mcpserver.About{Name: "n", Version: "v"})
	return mcpserver.New(mcpserver.Config{Adapter: quiet, PublicURL: "http://example.com",
		Server: func(*http.Request) (*sdk.Server, error) { return server, nil },
		Admit:  func(_ http.ResponseWriter, r *http.Request) (*http.Request, error) { return r, nil }})
}

func feeder() http.Handler {
	pool, err := pgxpool.New(context.Background(), "postgres://u:p@127.0.0.1:1/none") // which no request here reaches
	if err != nil {
		panic(err)
	}
	return keyfeed.New(keyfeed.Config{Pool: pool, Respond: quiet, Log: silent})
}

func repeatable() http.Handler {
	return idempotency.New(idempotency.Config{Respond: quiet}).Wrap(http.NotFoundHandler())
}

// tool is one that takes arguments in every place.
var tool = func() toolset.Tool {
	list, err := toolset.From([]byte(strings.ReplaceAll(`{"paths":{"/v1/things/{id}":{"post":{"operationId":"act","security":[{"key":[]}],"responses":{"200":{}},
		"parameters":[{"name":"id","in":"path"},{"name":"tag","in":"query"}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"name":{"type":"string"}}}}}}}}}}`, "\n", "")))
	if err != nil || len(list) != 1 {
		panic(err)
	}
	return list[0]
}()
