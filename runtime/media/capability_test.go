package media_test

import (
	"testing"

	"sluice.dev/sluice/filters/identity"
)

func TestSurfacesWithoutAnEngineSaySo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, path := range []string{"/v1/transcribe", "/v1/captions", "/v1/voice", "/v1/vision", "/v1/render", "/v1/transcode", "/v1/mux"} {
		b.do("POST", path, "bytes", "Content-Type", "application/octet-stream").wantError(501, "not_implemented")
		b.do("POST", path, "bytes", identity.Header, "none").wantError(401, "authentication_required")
	}
}
