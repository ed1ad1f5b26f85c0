// Package demo is a tour of a running platform, from outside: it publishes a test
// picture, watches it through the gateway, has a schedule stop it, and shows the
// signed webhooks as they arrive. It knows the platform by its public API alone.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Config says what the tour goes through.
type Config struct {
	Gateway string // base URL, without a trailing slash
	Key     string // an API key with the scopes of streams, schedules, webhooks and recordings
	FFmpeg  string // path of ffmpeg, which publishes
	// On is how long the stream is on air before the schedule stops it. 0: 30 s.
	On  time.Duration
	Out io.Writer
	// HTTP makes the calls. Nil: a client with a timeout of 15 s.
	HTTP *http.Client
}

// patience is how long each step may take beyond what is planned.
const patience = 30 * time.Second

// tour is one run.
type tour struct {
	Config
	stream   stream
	receiver *receiver // nil: the stack does not call this machine
}

// stream is what the tour needs of one.
type stream struct {
	ID     string `json:"id"`
	Ingest struct {
		Available bool     `json:"available"`
		RTMP      endpoint `json:"rtmp"`
		SRT       endpoint `json:"srt"`
	} `json:"ingest"`
	Playback struct {
		HLS    string `json:"hls_url"`
		DASH   string `json:"dash_url"`
		WebRTC string `json:"webrtc_url"`
	} `json:"playback"`
}

// endpoint is where a stream is published to.
type endpoint struct {
	URL string `json:"url"`
	Key string `json:"stream_key"`
}

// Run takes the tour. It fails when a step does not show what it promises; what
// it has made is removed again, but for the stream and its recording.
func Run(ctx context.Context, c Config) error {
	if c.On == 0 {
		c.On = 30 * time.Second
	}
	if c.HTTP == nil {
		c.HTTP = &http.Client{Timeout: 15 * time.Second}
	}
	t := &tour{Config: c}
	ctx, cancel := context.WithTimeout(ctx, c.On+4*patience)
	defer cancel()
	stop, err := t.listen(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := t.create(ctx); err != nil {
		return err
	}
	p, err := t.publish()
	if err != nil {
		return err
	}
	defer p.stop()
	return errors.Join(t.watch(ctx, p), t.end(ctx, p))
}

// errNoEngine says what to do without.
var errNoEngine = errors.New("this stack has no media engine: run `make tools`, then `make up` again")

// say prints one line of a step.
func (t *tour) say(format string, args ...any) { fmt.Fprintf(t.Out, format+"\n", args...) }

// create makes a signed stream that is recorded.
func (t *tour) create(ctx context.Context) error {
	body := map[string]any{"title": "Sluice demo", "protocol": "rtmp", "recording": map[string]any{"enabled": true},
		"playback_policy": "signed", "viewer_threshold": 1, "metadata": map[string]string{"made_by": "sluice demo"}}
	if err := t.call(ctx, http.MethodPost, "/v1/streams", body, &t.stream); err != nil {
		return err
	}
	if !t.stream.Ingest.Available {
		return errNoEngine
	}
	if t.receiver != nil {
		t.receiver.follow(t.stream.ID)
	}
	t.say("2. A stream      %s, signed and recorded; publish to %s", t.stream.ID, t.stream.Ingest.RTMP.URL)
	return nil
}

// watch shows the stream as a viewer gets it.
func (t *tour) watch(ctx context.Context, p *publisher) error {
	var token struct {
		HLS    string `json:"hls_url"`
		DASH   string `json:"dash_url"`
		Player string `json:"embed_url"`
	}
	if err := t.call(ctx, http.MethodPost, "/v1/streams/"+t.stream.ID+"/tokens", map[string]any{"viewer": "demo"}, &token); err != nil {
		return err
	}
	began := time.Now()
	lines, err := t.playlist(ctx, token.HLS, p)
	if err != nil {
		return err
	}
	t.say("4. It plays      HLS through the gateway %.1f s after the start (%d lines of playlist). Look at it now:", time.Since(began).Seconds(), lines)
	t.say("\n   %s&autoplay=true&muted=true\n", token.Player)
	t.say("   or by DASH, in a player of yours: %s\n", token.DASH)
	return nil
}

// end has a schedule stop the stream, and waits for what follows.
func (t *tour) end(ctx context.Context, p *publisher) error {
	at := time.Now().UTC().Add(t.On).Truncate(time.Second)
	body := map[string]any{"name": "demo stop " + t.stream.ID, "type": "stream_start",
		"schedule": map[string]any{"type": "one_time", "executeAt": at.Format(time.RFC3339)},
		"action":   map[string]any{"streamId": t.stream.ID, "action": "stop"}}
	if err := t.call(ctx, http.MethodPost, "/v1/events/schedules", body, nil); err != nil {
		return err
	}
	t.say("5. A schedule    stops it at %s (in %.0f s)", at.Format("15:04:05Z"), time.Until(at).Seconds())
	select {
	case <-p.gone:
		t.say("6. It stopped    %s; the engine closed the publisher", time.Now().UTC().Format("15:04:05.0Z"))
	case <-time.After(time.Until(at) + patience):
		return errors.New("the schedule did not stop the stream")
	case <-ctx.Done():
		return ctx.Err()
	}
	link, err := t.recording(ctx)
	if err != nil {
		return err
	}
	t.say("7. The recording is ready: %s", link)
	return t.heard(ctx)
}

// recording waits for the recording and returns its address.
func (t *tour) recording(ctx context.Context) (link string, err error) {
	err = until(ctx, patience, func() error {
		var list struct {
			Data []struct {
				Status string `json:"status"`
				URL    string `json:"playback_url"`
			} `json:"data"`
		}
		if err := t.call(ctx, http.MethodGet, "/v1/recordings?stream_id="+t.stream.ID, nil, &list); err != nil {
			return err
		}
		if len(list.Data) == 0 || list.Data[0].Status != "ready" {
			return errors.New("the recording is not ready")
		}
		link = list.Data[0].URL
		return nil
	})
	return link, err
}

// until asks again, since the platform gives no signal here, until f succeeds.
func until(ctx context.Context, patience time.Duration, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}
