// Package edgeapi defines the names that the filters, an edge's agent and the
// control plane share: paths, headers, a cluster, a VM and a secret.
package edgeapi

const (
	// RecordsPath is where edges read the key feed.
	RecordsPath = "/feed/v1/records"
	// CountsPath is where edges exchange the counts of shared rate limits.
	CountsPath = "/feed/v1/counts"
	// UsagePath is where edges send metered usage.
	UsagePath = "/feed/v1/usage"
	// TrafficPath is where edges hand their agent what they count for metrics.
	TrafficPath = "/agent/v1/traffic"
	// ReportPath is where agents report the state of their edges.
	ReportPath = "/fleet/v1/report"
	// EdgeHeader names the edge that makes a request to the control plane.
	EdgeHeader = "x-sluice-edge"
	// VersionHeader is the response header by which a replica says that it serves
	// an xDS stream, and from which version of the configuration on.
	VersionHeader = "sluice-config-version"
	// EdgeFilter is the name of the edge filter, and of the resource that has its policy.
	EdgeFilter = "sluice.edge"
	// FeedCluster is Envoy's cluster of the control plane's HTTP/1.1 requests.
	FeedCluster = "sluice_feed"
	// WouldState is where the edge filter leaves why a request would have been refused
	// that passes because its route has that in the shadow. In Envoy it is filter state
	// of the name behind "wasm.".
	WouldState = "would"
	// ChallengeCluster is Envoy's cluster of the agent, where it completes the
	// handshakes of tls-alpn-01.
	ChallengeCluster = "sluice_acme"
	// HTTPChallengePath is where authorities look for answers to http-01, followed by a
	// token (RFC 8555, 8.3), and where edges ask the control plane for them.
	HTTPChallengePath = "/.well-known/acme-challenge/"
	// TLSChallengePath is where agents ask the control plane for the answer to
	// tls-alpn-01, followed by a host.
	TLSChallengePath = "/fleet/v1/tls-alpn-01/"
	// VMID is the vm_id of keysync and of the edge filter, which share data by it.
	VMID = "sluice-edge"
	// IdentitySecret is the name in the key feed of the secret that signs identity
	// headers.
	IdentitySecret = "identity"
)
