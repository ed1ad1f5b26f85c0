package server

import (
	"log/slog"
	"net"
	"testing"

	"sluice.dev/sluice/media/live/moq/rtsp"
)

// Whoever comes while a stream that nobody watches is let go gets another reader of it,
// not the one that ends.
func TestASourceThatEndsIsHandedOutNoMore(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // an engine that does not answer
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	h := newHub(rtsp.Engine{Addr: mute.Addr().String(), Password: "p"}, slog.New(slog.DiscardHandler))
	first := h.enter("play_1")
	if h.enter("play_1") != first {
		t.Error("a stream is read twice")
	}
	h.leave("play_1", first)
	if h.enter("play_1") != first {
		t.Error("a stream that is watched is read anew")
	}
	h.leave("play_1", first)
	h.leave("play_1", first)
	second := h.enter("play_1")
	if second == first {
		t.Error("a source that ends is handed out")
	}
	<-first.known
	if h.enter("play_1") != second {
		t.Error("the end of a source takes the next one with it")
	}
	h.leave("play_1", second)
	h.leave("play_1", second)
	<-second.known
	if len(h.sources) > 0 {
		t.Errorf("%d sources are left", len(h.sources))
	}
}
