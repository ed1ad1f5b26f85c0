package main

import (
	"encoding/base64"
	"net/netip"
	"strings"

	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/caps"
	"sluice.dev/sluice/filters/caps/jsonscan"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/host/wire"
	"sluice.dev/sluice/filters/httpcache"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/limits/connections"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/filters/limits/traffic"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/routehint"
	"sluice.dev/sluice/filters/schema"
	"sluice.dev/sluice/filters/schema/compile"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/filters/x402"
)

var secret = []byte("secret")

// asked are bodies of chat requests.
var asked = in(`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":%s}`, `{"model":"m","messages":[{"role":"user","content":%s}]}`,
	`{"model":"m","messages":%s}`, `{"model":"m","messages":[],"stream_options":%s}`, `{"model":%s}`)

// checked is a table with a schema that has something to say of every value.
var checked = func() *schema.Table {
	b, faults := compile.Table(compile.Request{
		Parameters: []compile.Parameter{{Name: "a", In: compile.Query, Explode: true, Schema: `{"type":"array","uniqueItems":true,"items":{"type":["integer","string"]}}`},
			{Name: "b", In: compile.Path, Segment: 1, Schema: `{"pattern":"^[a-z]+$"}`}},
		Body: &compile.Body{Contents: []compile.Content{{Type: "application/json", Schema: `{"uniqueItems":true,"contains":{"minimum":3},"items":{"$ref":"#"},
			"required":["a","b"],"propertyNames":{"maxLength":9},"patternProperties":{"^x":{"type":"string"}},"additionalProperties":{"$ref":"#"},
			"anyOf":[{"type":"object","properties":{"a":{"$ref":"#"}}},{"multipleOf":0.01},{"format":"uri"}],"not":{"enum":[1,"a",{"a":[1]}]},"minLength":2,"pattern":"a.*b"}`}}},
	}, nil)
	if faults != nil {
		panic(faults)
	}
	return schema.Parse(b)
}()

// hinted are the routes of a listener, as text.
const hinted = "/v1/streams GET,HEAD *\n/v1/streams/{id}/clips POST a.example,*.b.example\n/files/* PUT *\n/v1/chat POST * runtime\n"

// filters are the rows of what runs in Envoy.
func filters() []parser {
	fields := texts("v1;a=acct_1;k=%s;m=00", "c1;a=192.0.2.7;k=%s")
	packed := texts("SLC1%s", "\x01\x00\x00\x00%s")
	kept := &httpcache.Rule{TTL: 60, MaxBytes: 1000, Vary: []string{"accept"}}
	header, raw := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"k","typ":"JWT"}`)), base64.RawURLEncoding
	tokens := append(texts("a.%s", "a.b.%s", header+".%s.sss"), append(encoded("%s.e30.sss", raw, in(`{"alg":%s}`)), encoded(header+".%s.sss", raw, in(`{"iss":"i","exp":9,"x":%s}`))...)...)
	payment := in(`{"x402Version":1,"scheme":"exact","network":"base","payload":%s}`, `{"x402Version":1,"x":%s}`)
	return []parser{
		{name: "filters/caps/jsonscan: Validate, Root, Members", read: quietly(scan), forms: in("[%s,%s]", " %s "), multiple: 1, constant: 4 << 10},
		{name: "filters/caps: Apply", read: quietly(func(in []byte) { _, _, _ = caps.Apply(nil, in, caps.Options{}) }), forms: asked},
		{name: "filters/caps: Apply, tools stripped", read: quietly(func(in []byte) { _, _, _ = caps.Apply(nil, in, caps.Options{StripTools: true}) }), forms: asked},
		{name: "filters/credentials/jwt: Parse", read: quietly(func(in []byte) { jwt.Parse(string(in)) }), forms: tokens, n: 1500},
		{name: "filters/credentials/jwt: ParseKey", read: quietly(func(in []byte) { jwt.ParseKey(in) }), forms: packed},
		{name: "filters/httpcache: Parse", read: quietly(func(in []byte) { httpcache.Parse(in) }), forms: texts("SLC\x01%s")},
		{name: "filters/httpcache: ParseEntry", read: quietly(func(in []byte) { httpcache.ParseEntry(in) }), forms: packed},
		{name: "filters/httpcache: Ask, Answer", read: quietly(func(in []byte) {
			a := kept.Ask([][2]string{{":method", "GET"}, {"id", string(in)}, {"accept", string(in)}, {"if-none-match", string(in)}}, "id", true)
			kept.Answer(a, [][2]string{{":status", "200"}, {"content-type", "a"}, {"cache-control", string(in)}, {"vary", string(in)}}, 0)
			httpcache.Entry{Headers: [][2]string{{"etag", "a"}}}.Reply(a, 0)
		}), forms: texts("a=1;%s", "max-age=1,%s", "\"%s"), multiple: 64},
		{name: "filters/schema: JSON", read: details(func(in []byte) []decision.Detail {
			c := new(schema.Checker)
			c.Start(checked)
			c.JSON(c.Body("application/json").Node, in)
			return c.Details()
		}), forms: in("%s", `{"a":[1,%s]}`), multiple: 64, constant: 1 << 20},
		{name: "filters/schema: Target", read: details(func(in []byte) []decision.Detail {
			c := new(schema.Checker)
			c.Start(checked)
			c.Target(string(in))
			return c.Details()
		}), forms: texts("/a/%s?a=1", "/a/b?a=%s", "/a/b?%s"), multiple: 256, constant: 64 << 10, n: 8000},
		{name: "filters/schema: ParseSet", read: quietly(func(in []byte) { schema.ParseSet(in) }), forms: packed},
		{name: "filters/schema/compile: Table", read: quietly(func(in []byte) {
			compile.Table(compile.Request{Body: &compile.Body{Contents: []compile.Content{{Type: "application/json", Schema: string(in)}}}}, nil)
		}), forms: in(`{"properties":%s}`, `{"enum":%s}`, `{"required":%s}`, `{"allOf":%s}`, `{"anyOf":[%s,true]}`, `{"const":%s}`, `{"dependentRequired":{"a":%s}}`), multiple: 1 << 10, constant: 1 << 20, n: 8000},
		{name: "filters/x402: Parse", read: quietly(func(in []byte) { x402.Parse(in) }), forms: payment, n: 1500},
		{name: "filters/x402: Decode", read: quietly(func(in []byte) {
			if text, issue := x402.Decode(string(in)); issue == "" {
				x402.Parse(text)
			}
		}), forms: append(encoded("%s", base64.StdEncoding, payment), texts()...), n: 1500},
		{name: "filters/credentials/apikey: Bearer, WellFormed, Malformed", read: quietly(func(in []byte) {
			apikey.Bearer(string(in))
			apikey.WellFormed(string(in))
			apikey.Malformed(string(in))
		}), forms: texts("Bearer %s", "slk_%s")},
		{name: "filters/credentials/clientcert: Memo.Read", read: quietly(func(in []byte) { new(clientcert.Memo).Read(string(in)) }),
			forms: texts(strings.Repeat("ab", 32)+"|1|2|%s||||", strings.Repeat("ab", 32)+"|1|2|||||CN=%s", "%s")},
		{name: "filters/credentials/apikey: Bare, Importable, LooksLikeToken", read: quietly(func(in []byte) {
			apikey.Bare("x-api-key", string(in))
			_, _ = apikey.Importable(string(in)), apikey.LooksLikeToken(string(in))
		}), forms: texts("%s", "ey%s")},
		{name: "filters/identityheader: Verify", read: quietly(func(in []byte) { _, _ = identityheader.Verify([][]byte{secret}, string(in), 1000) }), forms: fields},
		{name: "filters/identityheader: VerifyVoucher", read: quietly(func(in []byte) { identityheader.VerifyVoucher(secret, string(in), "key_1", 1000) }), forms: fields},
		{name: "filters/credentials/allowlist: Parse, Decide", read: quietly(func(in []byte) {
			allowlist.Parse(string(in))
			allowlist.Decide(string(in), allowlist.Encode([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}))
			allowlist.Decide("192.0.2.1:1", in)
		}), forms: texts("192.0.2.%s", "2001:db8::%s")},
		{name: "filters/scopes: Valid, Covers", read: quietly(func(in []byte) { scopes.Valid(string(in)); scopes.Covers([]string{"a:*"}, string(in)) }), forms: texts("a:%s")},
		{name: "filters/routehint: Find, paths", read: quietly(func(in []byte) { routehint.Find(hinted, "a.example", string(in)) }), forms: texts("/v1/streams%s", "/%s/streams", "/v1/{x}?%s")},
		{name: "filters/routehint: Find, routes", read: quietly(func(in []byte) { routehint.Find(string(in), "a.example", "/v1/streams/7/clips") }),
			forms: texts("/v1/stream%s GET,HEAD *\n", "/v1/streams/{id}/clip GET %s\n")},
		{name: "filters/policy: Parse", read: quietly(func(in []byte) { policy.Parse(in) }), forms: packed},
		{name: "filters/limits/meter: ParseParcel", read: quietly(func(in []byte) { meter.ParseParcel(in) }), forms: packed},
		{name: "filters/limits/traffic: ParseParcel", read: quietly(func(in []byte) { traffic.ParseParcel(in) }), forms: packed},
		{name: "filters/credentials/keytable: ParsePage", read: quietly(func(in []byte) { keytable.ParsePage(in) }), forms: packed},
		{name: "filters/authorize: CutBearer", read: quietly(func(in []byte) { authorize.CutBearer(string(in)) }), forms: texts("sluice.bearer.a,%s", "chat, sluice.bearer.%s"), multiple: 64},
		{name: "filters/limits/connections: Record", read: quietly(func(in []byte) { connections.Get(placed(in), sharedlimit.Place{}).Share(1_800_000_000) }), forms: packed},
		{name: "filters/limits/sharedlimit: ParseReport, ParseAnswer", read: quietly(func(in []byte) { sharedlimit.ParseReport(in); sharedlimit.ParseAnswer(in) }), forms: packed},
		{name: "filters/host/wire: Reader", read: quietly(func(in []byte) {
			r := wire.NewReader(in)
			for range r.Count(1 << 30) {
				r.Text(1 << 20)
			}
		}), forms: packed},
		{name: "filters/decision: AppendEnvelope", read: quietly(func(in []byte) {
			d := decision.Decision{Code: decision.ScopeMissing, Detail: decision.Detail{Field: string(in), Issue: string(in), Expected: string(in)}}
			if n := len(decision.AppendEnvelope(nil, d, "req-1", "http://gw")); n > 16<<10 {
				panic(errAnswer)
			}
		}), forms: texts()},
	}
}

// scan walks everything that is in b, level by level.
func scan(b []byte) {
	if jsonscan.Validate(b, jsonscan.MaxDepth) != nil {
		return
	}
	v := jsonscan.Root(b)
	switch v.Kind(b) {
	case jsonscan.Object, jsonscan.Array:
		for w := jsonscan.Members(b, v); w.Step(); {
			jsonscan.Equal(w.Name, "name")
		}
	case jsonscan.Number:
		jsonscan.Integer(b[v.From:v.To])
	case jsonscan.String:
		jsonscan.Find(v.Text(b), 0, "word")
	}
}

// placed is a store that has a record in every place.
type placed []byte

func (p placed) Get(sharedlimit.Place) (connections.Record, uint32) { return connections.Record(p), 1 }

func (p placed) Set(sharedlimit.Place, connections.Record, uint32) bool { return true }
