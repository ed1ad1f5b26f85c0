//go:build race

package growth

// instrumented is how much more code may allocate under the race detector, with which
// the compiler does not extend a slice without an intermediate one.
const instrumented = 3
