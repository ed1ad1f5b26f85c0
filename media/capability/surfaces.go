package capability

import (
	"net/url"
	"strings"
)

// conversions are the surfaces that ffmpeg serves, with what reads their queries.
var conversions = map[string]func(url.Values) (order, error){"render": render, "transcode": transcode, "mux": mux}

// Surfaces says of each surface, by its name, whether it is served here; converts says
// whether there is an ffmpeg. Those that engines serve are not.
func Surfaces(converts bool) map[string]bool {
	served := map[string]bool{}
	for _, path := range Paths() {
		name := strings.TrimPrefix(path, "/v1/")
		served[name] = converts && conversions[name] != nil
	}
	return served
}
