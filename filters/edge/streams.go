package main

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/authorize"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/limits/connections"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/policy"
)

// stream is a request of a watched route, on its way or open.
type stream struct {
	request *request
	route   *policy.Route
	caller  *keytable.Record // nil: nobody known, whose credential nothing can end
	token   string
	// certificate is the caller's, if that is what let it in.
	certificate *clientcert.Certificate
	places      []ratelimit.ID // that it holds
	// opened: its answer has begun, and it was counted as a request.
	opened bool
	// counted is when it was last counted, and in and out are its bytes until then.
	counted time.Time
	in, out uint64
	closing bool
	keyed   bool // the client sent no key of a WebSocket
}

// openStreams are those of this worker's VM.
type openStreams struct {
	list     []*stream
	places   *connections.Holder // nil until the first
	walked   time.Time
	renewed  time.Time
	revision uint64 // of the records when they were last rechecked
	checked  int64  // the second in which that was
}

// streams outlive policies: one may begin under one and end under another.
var streams openStreams

const (
	// walkEvery is how often streams are looked at.
	walkEvery = 400 * time.Millisecond
	// countEvery is how often an open stream is counted.
	countEvery = 10 * time.Second
)

// openStream lets the request of a watched route pass, if there is a place for it.
func (r *request) openStream(v *authorize.Verdict, at time.Time, end bool) types.Action {
	s := &stream{request: r, route: v.Route, token: v.Token}
	if v.Known {
		caller := v.Caller
		s.caller = &caller
		if v.Token == "" {
			s.certificate = authorize.CertificateOf(v.Route, &r.plugin.env, s.caller)
		}
		if c := s.certificate; c != nil && (caller.Expires == 0 || c.Expires < int64(caller.Expires)) {
			caller.Expires = uint32(min(c.Expires, math.MaxUint32))
		}
	}
	v.Decision = r.body.checkLength(v.Route.BodyLimit, end)
	if v.OK() {
		v.Decision = s.takePlaces(at.UnixMilli())
	}
	if v.OK() {
		s.prepareUpgrade()
		v.Decision = r.identify(*v, at.Unix())
	}
	if !v.OK() {
		s.releasePlaces(at.UnixMilli())
		r.noteRefusal(v)
		return r.deny(v.Decision)
	}
	r.extra = &extra{stream: s}
	streams.list = append(streams.list, s)
	return types.ActionContinue
}

// prepareUpgrade makes the request for a WebSocket one that the product takes.
func (s *stream) prepareUpgrade() {
	if s.route.Stream != policy.Upgrades {
		return
	}
	hideCredential()
	if wasmhost.Header("upgrade") == "" || wasmhost.Header(keyHeader) != "" {
		return
	}
	s.keyed = proxywasm.ReplaceHttpRequestHeader(keyHeader, newKey(time.Now().UnixNano(), s.request.context)) == nil
}

// Over HTTP/2 a WebSocket has no key and no answer to one (RFC 8441 section 5.1), but a
// product that speaks HTTP/1.1 wants one, and Envoy gives it none.
const (
	keyHeader    = "sec-websocket-key"
	acceptHeader = "sec-websocket-accept"
)

// newKey returns a key: 16 bytes that are seldom twice the same. They prove that the product
// speaks WebSocket, and keep no secret.
func newKey(nanos int64, context uint32) string {
	b := binary.LittleEndian.AppendUint64(nil, uint64(nanos)*0x9e3779b97f4a7c15)
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(b, (uint64(nanos)^uint64(context))*0xbf58476d1ce4e5b9))
}

// hideCredential takes a credential out of the protocols that the client speaks: the
// product must not see it, nor choose it.
func hideCredential() {
	header := wasmhost.Header(authorize.ProtocolsHeader)
	credential, rest := authorize.CutBearer(header)
	switch {
	case credential == "":
	case rest == "":
		_ = proxywasm.RemoveHttpRequestHeader(authorize.ProtocolsHeader)
	default:
		_ = proxywasm.ReplaceHttpRequestHeader(authorize.ProtocolsHeader, rest)
	}
}

// takePlaces takes a place of the account's, and one of the key's, where these are limited.
func (s *stream) takePlaces(millis int64) decision.Decision {
	p := s.request.plugin
	if s.caller == nil || s.route.Class >= policy.ShadowClass { // limits in the shadow refuse nothing
		return decision.Pass
	}
	plan, ok := p.policy.Plan(s.caller.Plan)
	if !ok {
		return decision.Pass
	}
	l := plan.Limits[s.route.Class]
	if d := s.takePlace(connections.AccountID(s.caller.Account, s.route.Class), l.Connections, "account", millis); !d.OK() || s.token != "" {
		return d
	}
	return s.takePlace(connections.KeyID(s.caller.ID, s.route.Class), l.ConnectionsPerKey, "key", millis)
}

func (s *stream) takePlace(id ratelimit.ID, limit uint32, whose string, millis int64) decision.Decision {
	if limit == 0 {
		return decision.Pass
	}
	if streams.places == nil {
		streams.places = connections.New(wasmhost.NumberWorker())
	}
	env := &s.request.plugin.env
	ok, hot := streams.places.Take(wasmhost.Connections{}, id, limit, env.fleet.Fleet(millis), millis)
	if !ok {
		return decision.Decision{Code: decision.ConnectionLimit, RetryAfter: retryConnection, Detail: decision.Detail{
			Field: "connections", Issue: "are all in use", Expected: "at most " + strconv.FormatUint(uint64(limit), 10) + " open at once for the " + whose}}
	}
	if hot != nil {
		wasmhost.ShareConnections(*hot)
	}
	s.places = append(s.places, id)
	return decision.Pass
}

// retryConnection is after how many seconds another try may find a place: nobody knows when
// one of the account's connections ends.
const retryConnection = 5

func (s *stream) releasePlaces(millis int64) {
	for _, id := range s.places {
		streams.places.Release(wasmhost.Connections{}, id, millis)
	}
	s.places = nil
}

// begin is called when the answer to the request has begun. A stream is a request from then
// on; what it carries afterwards is counted while it is open. One that the product refuses
// is counted at its end, as any request.
func (s *stream) begin() {
	u := &s.request.usage
	if s.keyed {
		_ = proxywasm.RemoveHttpResponseHeader(acceptHeader)
	}
	if s.opened || u.refused || u.status >= 400 {
		return
	}
	u.count()
	s.opened, s.counted, s.in, s.out = true, u.began, u.in, u.out
}

// end is called when the request has ended.
func (s *stream) end() {
	now := time.Now()
	if i := slices.Index(streams.list, s); i >= 0 {
		last := len(streams.list) - 1
		streams.list[i], streams.list[last] = streams.list[last], nil
		streams.list = streams.list[:last]
	}
	s.releasePlaces(now.UnixMilli())
	if s.opened {
		s.countPart(now)
		return
	}
	s.request.usage.count()
}

// countPart counts what has passed since the last time.
func (s *stream) countPart(now time.Time) {
	u := &s.request.usage
	worker.countPart(u.key, u.trafficKey(""), meter.Part{In: u.in - s.in, Out: u.out - s.out, Open: now.Sub(s.counted)}, now.Unix())
	s.in, s.out, s.counted = u.in, u.out, now
}

// tick looks at all streams, if it is time: those whose credential has ended are closed, and
// what has passed is counted. p is the plugin in whose context it is called.
func (o *openStreams) tick(p *plugin, now time.Time) {
	if len(o.list) == 0 || now.Sub(o.walked) < walkEvery && now.After(o.walked) {
		return
	}
	o.walked = now
	o.renew(now)
	recheck := o.mustRecheck(p, now.Unix())
	for _, s := range slices.Clone(o.list) { // closing one may end it at once
		if s.caller != nil && !s.closing && (recheck || s.caller.Expired(now.Unix())) {
			s.recheck(now)
		}
		if !s.opened || now.Sub(s.counted) < countEvery {
			continue
		}
		if proxywasm.SetEffectiveContext(s.request.context) != nil {
			s.end() // Envoy knows it no more: whatever hid its end from us, it holds no place
		} else {
			s.countPart(now)
		}
	}
	_ = proxywasm.SetEffectiveContext(p.context)
}

// renew says again what this worker holds.
func (o *openStreams) renew(now time.Time) {
	if o.places == nil || now.Sub(o.renewed) < connections.RenewEvery*time.Second && now.After(o.renewed) {
		return
	}
	o.renewed = now
	o.places.Renew(wasmhost.Connections{}, now.UnixMilli(), wasmhost.ShareConnections)
}

// mustRecheck reports whether anything has changed of what the edge knows of credentials;
// at most once in a second, whatever the changes.
func (o *openStreams) mustRecheck(p *plugin, now int64) bool {
	revision := p.env.revision.Now()
	if revision == o.revision || now == o.checked {
		return false
	}
	o.revision, o.checked = revision, now
	return true
}

// recheck closes the stream if a new request of its caller would be refused.
func (s *stream) recheck(now time.Time) {
	p := s.request.plugin
	d := authorize.Recheck(p.policy, s.route, &p.env, s.caller, s.token, s.certificate, p.env.begin(now))
	if d.OK() || d.Code == decision.EdgeNotReady {
		return
	}
	s.close(d)
}

// close ends the stream: with the answer to a refused request if its own has not begun, else
// by a reset, as Envoy has filters write nothing outside of what the two ends send.
func (s *stream) close(d decision.Decision) {
	s.closing = true
	if err := proxywasm.SetEffectiveContext(s.request.context); err != nil {
		s.end() // Envoy knows it no more
		return
	}
	if !s.opened {
		s.request.deny(d)
		return
	}
	if !wasmhost.EndStream(decision.Lookup(d.Code).Status, edgeapi.EndedDetail+string(d.Code)) {
		proxywasm.LogError("edge: a stream does not close: " + string(d.Code))
	}
}
