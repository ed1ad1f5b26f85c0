package playback

// Sign returns an HLS playlist as a viewer with a token gets it. The playlist is
// the engine's, whose streams are anybody's: see sign for what it costs.
func Sign(playlist []byte, token string) []byte { return sign(playlist, token) }
