package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/pion/webrtc/v4"
)

// track is one that comes by WebRTC.
type track struct {
	packets atomic.Int64
	codec   atomic.Value // a string, such as video/H264
}

// whep plays a stream by WebRTC (WHEP, draft-ietf-wish-whep) until so many packets of
// pictures and of sound have come, and returns their codecs.
func (t *tour) whep(ctx context.Context, address string, packets int64) (codecs string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	peer, err := webrtc.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	defer func() { _ = peer.Close() }()
	var video, audio track
	done, ended := make(chan struct{}, 2), make(chan error, 1)
	peer.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateFailed {
			ended <- errors.New("the connection failed")
		}
	})
	peer.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		to := &video
		if remote.Kind() == webrtc.RTPCodecTypeAudio {
			to = &audio
		}
		to.codec.Store(remote.Codec().MimeType)
		for {
			if _, _, err := remote.ReadRTP(); err != nil {
				return // the connection is closed
			}
			if to.packets.Add(1) == packets {
				done <- struct{}{}
			}
		}
	})
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		if _, err := peer.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
			return "", err
		}
	}
	if err := t.negotiate(ctx, peer, address); err != nil {
		return "", err
	}
	for range 2 {
		select {
		case <-done:
		case err := <-ended:
			return "", err
		case <-ctx.Done():
			return "", fmt.Errorf("%d packets of pictures and %d of sound came by WebRTC", video.packets.Load(), audio.packets.Load())
		}
	}
	return fmt.Sprintf("%v and %v", video.codec.Load(), audio.codec.Load()), nil
}

// negotiate exchanges descriptions with the gateway.
func (t *tour) negotiate(ctx context.Context, peer *webrtc.PeerConnection, address string) error {
	offer, err := peer.CreateOffer(nil)
	if err != nil {
		return err
	}
	gathered := webrtc.GatheringCompletePromise(peer)
	if err := peer.SetLocalDescription(offer); err != nil {
		return err
	}
	select {
	case <-gathered:
	case <-ctx.Done():
		return ctx.Err()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader([]byte(peer.LocalDescription().SDP)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/sdp")
	answer, err := t.do(req)
	if err != nil {
		return err
	}
	return peer.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: string(answer)})
}
