package wasmhost

// What the control plane says of a listener's routes stands beside them, in the metadata
// of their virtual host: one copy for all workers of an Envoy.
var (
	routeText    = []string{"xds", "virtual_host_metadata", "filter_metadata", "sluice", "routes"}
	routeTextSum = []string{"xds", "virtual_host_metadata", "filter_metadata", "sluice", "sum"}
)

// RouteTextSum is a digest of RouteText, by which a worker knows whether it has that.
func RouteTextSum() string { return property(routeTextSum) }

// RouteText is the text of package routehint for the listener of the request; "" when
// there is none.
func RouteText() string { return property(routeText) }
