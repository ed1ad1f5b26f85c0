package capability

import "strings"

// conversions are the surfaces that ffmpeg serves.
var conversions = map[string]bool{"render": true, "transcode": true, "mux": true}

// Surfaces says of each surface, by its name, whether it is served here; converts says
// whether there is an ffmpeg. Those that engines serve are not.
func Surfaces(converts bool) map[string]bool {
	served := map[string]bool{}
	for _, path := range Paths() {
		name := strings.TrimPrefix(path, "/v1/")
		served[name] = converts && conversions[name]
	}
	return served
}
