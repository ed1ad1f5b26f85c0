//go:build !race

package growth

// instrumented: as it is.
const instrumented = 1
