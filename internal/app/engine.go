package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/live/aes67"
	"sluice.dev/sluice/media/live/engine"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/bindcheck"
	"sluice.dev/sluice/platform/process/memlimit"
	"sluice.dev/sluice/platform/process/telemetry"
)

// RunEngine runs the media engine and keeps the product in step with it.
func RunEngine(ctx context.Context, env Environment) error {
	binary, err := env.Program(ctx, programs.Engine)
	if err != nil {
		return err
	}
	if binary == programs.Off {
		return errors.New("there is no media engine: run `make tools`, put mediamtx " + programs.Engine.Version + " on PATH, or set SLUICE_MEDIA_ENGINE to it")
	}
	p, err := env.start(ctx, "engine", 10)
	if err != nil {
		return err
	}
	defer p.close(ctx)
	s, err := p.services(p.pool)
	if err != nil {
		return err
	}
	c, err := p.media(ctx, s)
	if err != nil {
		return err
	}
	if c.Transports.Network.Interfaces, err = aes67.Interfaces(env.Get("SLUICE_TRANSPORT_INTERFACES")); err != nil {
		return fmt.Errorf("SLUICE_TRANSPORT_INTERFACES: %w", err)
	}
	dir, err := filepath.Abs(filepath.Join(env.Get("SLUICE_STATE_DIR"), "engine"))
	if err != nil {
		return err
	}
	logs, err := env.logs()
	if err != nil {
		return err
	}
	var output io.Writer = os.Stderr
	if logs.JSON {
		output = telemetry.Lines(slog.Default())
	}
	telephony, err := env.telephony(c)
	if err != nil {
		return err
	}
	moq, err := p.moq(ctx)
	if err != nil {
		return err
	}
	parts, err := env.mediaParts()
	if err != nil {
		return err
	}
	host, err := env.ingestHost()
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.engineHealth(ctx) })
	g.Go(func() error {
		return media.RunEngine(ctx, c, engine.Config{
			Binary: binary, Dir: dir, Output: output, Host: host, Memory: memlimit.Container(os.DirFS("/")) / 2,
			RTMP: env.Get("SLUICE_RTMP_ADDR"), SRT: env.Get("SLUICE_SRT_ADDR"), WebRTC: env.Get("SLUICE_WEBRTC_ADDR"), Media: env.Get("SLUICE_WEBRTC_MEDIA_ADDR"),
			HLS: env.Get("SLUICE_HLS_LISTEN"), API: env.Get("SLUICE_ENGINE_API_LISTEN"), RTSP: env.Get("SLUICE_RTSP_LISTEN"),
			Parts: parts,
		}, media.Beside{Telephony: telephony, MoQ: moq})
	})
	return g.Wait()
}

// engineHealth answers while the engine does. The database is not asked: viewers of a
// stream on air need none here.
func (p *process) engineHealth(ctx context.Context) error {
	api := engine.API{Base: "http://" + localAddress(p.Get("SLUICE_ENGINE_API_LISTEN")), Client: &http.Client{Timeout: 2 * time.Second}}
	alive := p.respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := api.Alive(r.Context()); err != nil {
			return &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: err}
		}
		httpapi.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return nil
	})
	return serve(ctx, atOnce, endpoint{name: "engine", addr: p.Get("SLUICE_ENGINE_LISTEN"), handler: telemetry.Beside(alive, p.metrics)})
}

// hostName is what a name or an address of a host is made of.
var hostName = regexp.MustCompile(`^[A-Za-z0-9.:-]{1,253}$`)

// ingestHost is where publishers reach the engine; "": at its addresses.
func (e Environment) ingestHost() (string, error) {
	host := e.Get("SLUICE_INGEST_HOST")
	if host != "" && !hostName.MatchString(host) {
		return "", fmt.Errorf("SLUICE_INGEST_HOST is %q: it is a name such as live.example.com, or an address", host)
	}
	return host, nil
}

// mediaParts is how long the parts of segments are; 0: there are none.
func (e Environment) mediaParts() (time.Duration, error) {
	const name = "SLUICE_MEDIA_PARTS"
	text := e.Get(name)
	if text == programs.Off {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 100*time.Millisecond || d > time.Second {
		return 0, fmt.Errorf("%s is %q: say off, or a duration from 100ms to 1s", name, text)
	}
	return d, nil
}

// Program finds a program that a stack can do without; programs.Off where there is
// none.
func (e Environment) Program(ctx context.Context, p programs.Program) (string, error) {
	found, err := p.Find(ctx, e.Get(p.Variable), os.Getenv("PATH"), filepath.Join(e.Get("SLUICE_STATE_DIR"), "tools"))
	if errors.Is(err, programs.ErrNotFound) {
		return programs.Off, nil
	}
	return found, err
}

// ingest adds the addresses of the media engine to the product's configuration,
// if there is one.
func (e Environment) ingest(ctx context.Context, c *media.Config) error {
	binary, err := e.Program(ctx, programs.Engine)
	if err != nil {
		return err
	}
	c.Endpoints = streams.Endpoints{
		RTMP: "rtmp://" + e.public("SLUICE_RTMP_ADDR") + "/live", SRT: "srt://" + e.public("SLUICE_SRT_ADDR"),
		WebRTC: e.publicURL() + "/v1/ingest", Playback: e.publicURL() + "/v1/playback",
	}
	if binary != programs.Off {
		c.Endpoints.Available = true
		e.moqEndpoint(c)
		c.EngineHLS = "http://" + e.engineAddress("SLUICE_HLS_LISTEN") + "/live"
		c.EngineWebRTC = "http://" + e.engineAddress("SLUICE_WEBRTC_ADDR") + "/live"
	}
	return nil
}

// engineAddress is the address in a variable as the product reaches it.
func (e Environment) engineAddress(variable string) string {
	addr := e.Get(variable)
	_, port, err := net.SplitHostPort(addr)
	if host := e.Get("SLUICE_ENGINE_HOST"); err == nil && host != "" {
		return net.JoinHostPort(host, port)
	}
	return addr
}

// public is the address in a variable as publishers reach it: at the engine's own public
// host, if it has one; one that listens everywhere is reached where the gateway is.
func (e Environment) public(variable string) string {
	addr := e.Get(variable)
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if own := e.Get("SLUICE_INGEST_HOST"); own != "" {
		return net.JoinHostPort(own, port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if u, err := url.Parse(e.publicURL()); err == nil && u.Hostname() != "" {
			return net.JoinHostPort(u.Hostname(), port)
		}
	}
	return addr
}

// engineAddrs are where the media engine listens, by variable.
var engineAddrs = []struct {
	variable string
	free     func(addr, variable string) error
}{
	{"SLUICE_RTMP_ADDR", bindcheck.Free}, {"SLUICE_SRT_ADDR", bindcheck.FreeUDP}, {"SLUICE_WEBRTC_ADDR", bindcheck.Free},
	{"SLUICE_WEBRTC_MEDIA_ADDR", bindcheck.FreeUDP}, {"SLUICE_HLS_LISTEN", bindcheck.Free}, {"SLUICE_ENGINE_LISTEN", bindcheck.Free}, {"SLUICE_ENGINE_API_LISTEN", bindcheck.Free},
	{"SLUICE_SIP_ADDR", freeSIP}, {"SLUICE_RTSP_LISTEN", bindcheck.Free}, {moqAddr, bindcheck.FreeUDP},
}

// placeEngine makes sure that the media engine can listen. An address that
// somebody has chosen must be free; in place of one of the table's that is in use,
// which are those that media servers use everywhere, it takes another port.
func (l *localStack) placeEngine() error {
	if l.set["SLUICE_MEDIA_ENGINE"] == programs.Off && !slices.Contains(l.missing, programs.Engine) {
		return nil
	}
	for _, a := range engineAddrs {
		if l.env.Get(a.variable) == programs.Off {
			continue
		}
		err := a.free(l.env.Get(a.variable), a.variable)
		if chosen, _ := l.env.Lookup(a.variable); err == nil || chosen != "" {
			if err != nil {
				return err
			}
			continue
		}
		other, err := bindcheck.Other(l.env.Get(a.variable))
		if err != nil {
			return err
		}
		l.set[a.variable] = other
	}
	return nil
}
