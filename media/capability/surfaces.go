package capability

import "strings"

// Surfaces says of each surface, by its name, whether it is served; converts says
// whether there is an ffmpeg.
func Surfaces(converts bool) map[string]bool {
	served := map[string]bool{}
	for _, path := range Paths() {
		_, lacking := missing[path]
		served[strings.TrimPrefix(path, "/v1/")] = converts && !lacking
	}
	return served
}
