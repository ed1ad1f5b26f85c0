package media

import (
	"context"
	"slices"

	"sluice.dev/sluice/media/capability"
	"sluice.dev/sluice/media/engines"
	"sluice.dev/sluice/media/live/transports"
)

// surfaces says of each surface that needs an engine whether it has one; the
// product registry asks for it at /health.
func (c *Config) surfaces(ctx context.Context, products map[string]engines.Known) map[string]string {
	served := capability.Surfaces(c.FFmpeg != "")
	for name, product := range products {
		served[name] = product.Available(ctx) && (c.FFmpeg != "" || !slices.Contains(listening, name))
	}
	served["rtmp"], served["srt"] = c.Endpoints.Available, c.Endpoints.Available
	served["webrtc"] = c.Endpoints.Available && c.EngineWebRTC != ""
	served["editor"] = c.FFmpeg != ""
	served["hls"], served["dash"] = c.EngineHLS != "", c.EngineHLS != ""
	served["phone"] = c.Phone.Available
	for _, name := range transports.Names {
		served[name] = c.Endpoints.Available && c.Transports.Engine(name) != ""
	}
	served["moq"] = c.Endpoints.Available && c.Endpoints.MoQ != ""
	said := map[string]string{}
	for name, is := range served {
		said[name] = "needs_engine"
		if is {
			said[name] = "available"
		}
	}
	return said
}

// listening are the surfaces for which ffmpeg takes the sound out of files.
var listening = []string{engines.Transcribe, "captions"}
