package media_test

import (
	"crypto/tls"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"sluice.dev/sluice/media/live/moq/client"
	"sluice.dev/sluice/media/live/moq/packaging"
	"sluice.dev/sluice/media/live/moq/server"
	"sluice.dev/sluice/media/live/moq/wire"
)

// Sessions of one account and connections of one address are bounded; who leaves makes
// room, and who only connects is sent away.
func TestMoQSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage(t, server.Limits{PerAccount: 3, PerAddress: 5})
	show := s.show(object{"protocol": "moq"})
	watch := show.text("playback.moq_url")
	quicly := strings.Replace(watch, "https:", "moqt:", 1)
	first := s.watch(show, watch, client.Viewer{})
	s.watch(show, quicly, client.Viewer{})
	s.watch(show, show.text("ingest.moq.url")+"/"+show.text("ingest.moq.stream_key"), client.Viewer{})
	for address, want := range map[string]string{watch: "429", quicly: "rate_limit_exceeded"} {
		if _, err := client.Dial(t.Context(), address, hashes(show), client.Viewer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a fourth session of the account: %v, want %s", err, want)
		}
	}
	first.Close(wire.CloseNoError, "")
	var again *client.Client
	await(t, func() (ok bool) { // until there is room for another session
		c, err := client.Dial(t.Context(), watch, hashes(show), client.Viewer{})
		again = c
		return err == nil
	})
	u, err := url.Parse(watch)
	if err != nil {
		t.Fatal(err)
	}
	idle := func(protocol string) (*quic.Conn, error) {
		return quic.DialAddr(t.Context(), u.Host, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, &quic.Config{EnableDatagrams: true})
	}
	byWeb, bad := idle(http3.NextProtoH3)
	byQUIC, worse := idle(wire.ALPN)
	if bad != nil || worse != nil {
		t.Fatal(bad, worse)
	}
	await(t, func() bool { // until a sixth connection of the address is refused
		_, _ = idle(wire.ALPN) // one more, which may be refused itself: those before may have been sent away
		_, err := client.Dial(t.Context(), quicly, hashes(show), client.Viewer{})
		// A refusal in the middle of the handshake has no reason (RFC 9000, section 10.2.3).
		return err != nil && (strings.Contains(err.Error(), "too many sessions") || strings.Contains(err.Error(), "APPLICATION_ERROR"))
	})
	for name, c := range map[string]*quic.Conn{"HTTP/3": byWeb, "QUIC": byQUIC} {
		select {
		case <-c.Context().Done():
		case <-time.After(patience):
			t.Errorf("%s: a connection without a session stays", name)
		}
	}
	select {
	case <-again.Ended:
		t.Error("a session ended without a reason")
	default:
	}
}

// Who watches when the stream is paused or deleted does not go on.
func TestAPausedStreamEndsItsSessions(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	show := s.show(object{"protocol": "rtmp"})
	s.film(show)
	address := show.text("playback.moq_url")
	watching := func() *client.Client {
		viewer := s.watch(show, address, client.Viewer{})
		s.next(s.take(viewer, show, packaging.CatalogMSF))
		return viewer
	}
	wantEnd := func(viewer *client.Client, why string) {
		t.Helper()
		select {
		case <-viewer.Ended:
		case <-time.After(patience):
			t.Errorf("a session outlives its stream, which was %s", why)
		}
	}
	viewer := watching()
	s.act(show.text("id"), "pause").want(200)
	wantEnd(viewer, "paused")
	if _, err := client.Dial(t.Context(), address, hashes(show), client.Viewer{}); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a paused stream: %v", err)
	}
	s.act(show.text("id"), "resume").want(200)
	viewer = watching()
	s.do("DELETE", "/v1/streams/"+show.text("id"), nil).want(204)
	wantEnd(viewer, "deleted")
}
