package media

import "sluice.dev/sluice/media/capability"

// surfaces says of each surface that needs an engine whether it has one; the
// product registry asks for it at /health.
func (c *Config) surfaces() map[string]string {
	served := capability.Surfaces(c.FFmpeg != "")
	served["rtmp"], served["srt"] = c.Endpoints.Available, c.Endpoints.Available
	served["webrtc"] = c.Endpoints.Available && c.EngineWebRTC != ""
	served["hls"] = c.EngineHLS != ""
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
