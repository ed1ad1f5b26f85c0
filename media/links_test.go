package media_test

import (
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/transports"
)

// Without the operator's word nothing may be reached, and the answer says what is to be
// set; reading goes on.
func TestTransportsThatAreOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, variable := range map[string]string{"dante": "SLUICE_TRANSPORT_INTERFACES", "omt": "SLUICE_OMT_BRIDGE", "ndi": "SLUICE_NDI_BRIDGE"} {
		if a := b.do("GET", "/v1/"+name, nil); a.status != 501 || !strings.Contains(a.text("error.message"), variable) {
			t.Errorf("%d %s", a.status, a.raw)
		}
		for _, kind := range []string{"inputs", "outputs"} {
			if a := b.do("POST", "/v1/"+name+"/"+kind, object{"stream_id": "x"}); a.status != 501 || !strings.Contains(a.text("error.message"), variable) {
				t.Errorf("%d %s", a.status, a.raw)
			}
			b.do("GET", "/v1/"+name+"/"+kind, nil).want(200)
			b.do("GET", "/v1/"+name+"/"+kind+"/nothing", nil).wantError(404, "not_found")
		}
		b.do("GET", "/v1/"+name+"/sources", nil).want(200)
	}
}

// onPaper is a product whose operator allows one group's range, without an engine at work.
func onPaper(t *testing.T) *bundle {
	return setup(t, func(c *media.Config) {
		c.Endpoints.Available = true
		c.Transports = transports.Settings{Bridges: map[string]string{"ndi": "/bin/false"}, Network: aes67.Network{Interfaces: []aes67.Interface{{Name: "lo"}},
			Allow: []netip.Prefix{netip.MustParsePrefix("239.69.0.0/16"), netip.MustParsePrefix("192.0.2.0/28")}}}
	})
}

func TestWhatALinkMustBe(t *testing.T) {
	t.Parallel()
	b := onPaper(t)
	id := b.stream("Show")
	const flow = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=Stage\r\nc=IN IP4 239.69.1.1/1\r\nt=0 0\r\nm=audio 5004 RTP/AVP 97\r\na=rtpmap:97 L24/48000/2\r\n"
	for _, c := range []struct {
		path  string
		body  object
		field string
	}{
		{"dante/inputs", object{"stream_id": "strm_other", "sdp": flow}, "stream_id"},
		{"dante/inputs", object{"stream_id": id}, "source"},
		{"dante/inputs", object{"stream_id": id, "source": "nobody"}, "source"},
		{"dante/inputs", object{"stream_id": id, "sdp": "v=0"}, "sdp"},
		{"dante/inputs", object{"stream_id": id, "sdp": flow, "source": "x"}, "sdp"},
		{"dante/inputs", object{"stream_id": id, "sdp": strings.Replace(flow, "239.69", "239.70", 1)}, "sdp"},
		{"dante/inputs", object{"stream_id": id, "sdp": strings.Replace(flow, "239.69.1.1/1", "10.0.0.1", 1)}, "sdp"},
		{"dante/inputs", object{"stream_id": id, "sdp": flow, "delay_ms": 1}, "delay_ms"},
		{"dante/inputs", object{"stream_id": id, "sdp": flow, "channels": []int{1, 3}}, "channels.1"},
		{"dante/inputs", object{"stream_id": id, "sdp": flow, "channels": []int{1, 2, 1}}, "channels"},
		{"dante/outputs", object{"stream_id": id, "address": "239.70.1.1"}, "address"},
		{"dante/outputs", object{"stream_id": id, "address": "gateway"}, "address"},
		{"dante/outputs", object{"stream_id": id, "port": 80}, "port"},
		{"dante/outputs", object{"stream_id": id, "format": "L8"}, "format"},
		{"dante/outputs", object{"stream_id": id, "name": "a\u0000b"}, "name"},
		{"omt/inputs", object{"stream_id": id, "source": "10.0.0.1:6400"}, "source"},
		{"omt/inputs", object{"stream_id": id, "source": "camera.local:6400"}, "source"},
		{"omt/inputs", object{"stream_id": id, "sdp": flow}, "sdp"},
		{"omt/outputs", object{"stream_id": id, "port": 22}, "port"},
		{"ndi/inputs", object{"stream_id": id}, "source"},
	} {
		b.do("POST", "/v1/"+c.path, c.body).wantError(400, "invalid_request", c.field)
	}
	in := b.do("POST", "/v1/dante/inputs", object{"stream_id": id, "sdp": flow}).want(201)
	b.do("POST", "/v1/omt/inputs", object{"stream_id": id, "source": "192.0.2.2:6400"}).wantError(409, "conflict")
	out := b.do("POST", "/v1/dante/outputs", object{"stream_id": id, "address": "239.69.9.9"}).want(201)
	b.do("POST", "/v1/dante/outputs", object{"stream_id": id, "address": "239.69.9.9"}).wantError(409, "conflict")
	if _, err := b.pool.Exec(t.Context(), `INSERT INTO media_transport_sources VALUES ('dante', 'src_1', 'Stage', '239.69.8.8:5004', '{}', $1)`, b.now); err != nil {
		t.Fatal(err)
	}
	b.do("POST", "/v1/dante/outputs", object{"stream_id": id, "address": "239.69.8.8"}).wantError(409, "conflict")
	b.do("GET", "/v1/dante/outputs/"+out.text("id")+"/sdp", nil).wantError(503, "service_unavailable")
	if l := b.do("GET", "/v1/dante/inputs?stream_id="+id, nil).want(200); l.text("data.0.id") != in.text("id") || l.get("pagination.total") != 1.0 {
		t.Errorf("%s", l.raw)
	}
	b.do("GET", "/v1/dante/inputs?stream_id=x", nil).wantError(400, "invalid_request", "stream_id")
	b.do("DELETE", "/v1/streams/"+id, nil).want(204)
	b.do("GET", "/v1/dante/inputs/"+in.text("id"), nil).wantError(404, "not_found")
}

// Links of others do not exist, and an account has twenty.
func TestLinksHaveOwners(t *testing.T) {
	t.Parallel()
	b := onPaper(t)
	id := b.stream("Show")
	first := b.do("POST", "/v1/dante/outputs", object{"stream_id": id}).want(201)
	other := identityheader.Caller{Account: "acct_other", Key: "key_other"}
	b.as(other, "GET", "/v1/dante/outputs/"+first.text("id"), nil).wantError(404, "not_found")
	b.as(other, "DELETE", "/v1/dante/outputs/"+first.text("id"), nil).wantError(404, "not_found")
	b.as(other, "POST", "/v1/dante/outputs", object{"stream_id": id}).wantError(400, "invalid_request", "stream_id")
	for i := range 19 {
		b.do("POST", "/v1/dante/outputs", object{"stream_id": id, "port": 6000 + 2*i}).want(201)
	}
	b.do("POST", "/v1/dante/outputs", object{"stream_id": id, "port": 7000}).wantError(409, "conflict")
}
