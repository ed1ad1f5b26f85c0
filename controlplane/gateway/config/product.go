package config

// Product is a service behind the gateway. Zero values mean the defaults given.
type Product struct {
	Name string `json:"name"`
	// Upstream is short for one address of upstreams, such as http://10.0.0.1:3000,
	// https://api.example.com or grpc://10.0.0.1:50051: with host, for https and grpcs
	// with tls, and for grpc and grpcs with grpc, as it says.
	Upstream       string     `json:"upstream,omitempty"`
	Upstreams      []Upstream `json:"upstreams,omitzero"`
	ConnectTimeout Duration   `json:"connect_timeout,omitempty"` // 1s
	IdleTimeout    Duration   `json:"idle_timeout,omitempty"`    // of a pooled connection: 50s
	MaxConnections uint32     `json:"max_connections,omitempty"` // of one edge: 4096
	MaxRequests    uint32     `json:"max_requests,omitempty"`    // of one edge, at once: 16384
	MaxPending     uint32     `json:"max_pending,omitempty"`     // of one edge, waiting for a connection: as max_requests
	// Retries is how often a request is sent again when the product cannot have
	// seen it, or its method is safe: 2.
	Retries *uint32 `json:"retries,omitempty"`
	// RetryOn lists answers after which a request of a safe method is sent again
	// too: statuses such as 503. None: those are handed on.
	RetryOn    []uint32 `json:"retry_on,omitempty"`
	TryTimeout Duration `json:"try_timeout,omitempty"` // of one attempt; none but the route's
	HealthPath string   `json:"health_path,omitempty"` // short for health with a path; empty: no active health checks
	Health     *Health  `json:"health,omitempty"`
	Outliers   Outliers `json:"outliers,omitzero"`
	// Host is what the product gets as Host; empty: what the client sent.
	Host  string `json:"host,omitempty"`
	HTTP2 bool   `json:"http2,omitempty"` // spoken with the product in place of HTTP/1.1
	// GRPC says that the product speaks gRPC, by HTTP/2: its routes honor grpc-timeout,
	// browsers may call them by gRPC-web, and a failed call counts as one.
	GRPC bool  `json:"grpc,omitempty"`
	TLS  *TLS  `json:"tls,omitempty"`  // none: plain text
	CORS *CORS `json:"cors,omitempty"` // of its routes that have none of their own
	// Schemas are those that requests of its routes may refer to, as
	// {"$ref": "#/schemas/NAME"}.
	Schemas map[string]JSONSchema `json:"schemas,omitempty"`
}

// Upstream is one address of a product.
type Upstream struct {
	// Address is host:port, or ${name} for an address that the control plane
	// is started with.
	Address string `json:"address"`
	Weight  uint32 `json:"weight,omitempty"` // 0: 1
}

// Health asks each address of a product whether it is well.
type Health struct {
	Path string `json:"path,omitempty"`
	// GRPC asks by the gRPC health checking protocol in place of a path: the name of a
	// service, or "" for the whole server.
	GRPC      *string  `json:"grpc,omitempty"`
	Host      string   `json:"host,omitempty"`      // the product's name
	Interval  Duration `json:"interval,omitempty"`  // 5s
	Timeout   Duration `json:"timeout,omitempty"`   // 1s
	Unhealthy uint32   `json:"unhealthy,omitempty"` // failures in a row that take an address out: 3
	Healthy   uint32   `json:"healthy,omitempty"`   // successes in a row that bring it back: 1
}

// Outliers takes addresses out for a while by what becomes of ordinary requests.
type Outliers struct {
	Off      bool   `json:"off,omitempty"`
	Failures uint32 `json:"failures,omitempty"` // connections in a row that fail: 5
	// ServerErrors is how many answers of 500 and above in a row: 0, never, since
	// those may be the callers' doing.
	ServerErrors uint32   `json:"server_errors,omitempty"`
	Interval     Duration `json:"interval,omitempty"`    // between looks: 2s
	Ejection     Duration `json:"ejection,omitempty"`    // the first time, longer each time: 5s
	MaxPercent   uint32   `json:"max_percent,omitempty"` // of addresses that may be out: 50
}

// TLS is how edges speak with a product. Files are on the edge's machine.
type TLS struct {
	// ServerName is asked for by SNI, and is the name that the product's
	// certificate must have.
	ServerName string `json:"server_name"`
	// CA is PEM of those whose certificates are believed, or CAFile a file of it.
	// Neither: those that the edge's machine believes.
	CA     string `json:"ca,omitempty"`
	CAFile string `json:"ca_file,omitempty"`
	// CertFile and KeyFile are PEM of the edge's own certificate and key, for
	// products that want one.
	CertFile string `json:"cert_file,omitempty"`
	KeyFile  string `json:"key_file,omitempty"`
}

// CORS lets pages of other origins call a route from browsers.
type CORS struct {
	// Origins such as https://app.example.com, https://*.example.com, or * for
	// all. None: none, which turns the product's off.
	Origins     []string `json:"origins"`
	Headers     []string `json:"headers,omitempty"`     // that a page may send: authorization, content-type, idempotency-key, if-match, if-none-match
	Expose      []string `json:"expose,omitempty"`      // that a page may read: etag, location, retry-after and those of ids and limits
	Credentials bool     `json:"credentials,omitempty"` // cookies; not with *
	MaxAge      Duration `json:"max_age,omitempty"`     // for which a browser remembers: 10m
}

// HeaderMatch asks for a request header. It says one thing besides the name;
// nothing: that the header is there.
type HeaderMatch struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`  // exactly
	Prefix string `json:"prefix,omitempty"` // that the value begins with
	Regex  string `json:"regex,omitempty"`  // RE2 that the whole value matches
	Absent bool   `json:"absent,omitempty"` // the header is not there
}

// Rewrite is what a product sees in place of what the client asked for.
type Rewrite struct {
	// Path is a template of the route's variables, such as /internal/{id}, with a
	// last * for what the route's * stands for.
	Path string `json:"path,omitempty"`
	// Prefix stands in place of the text before the first variable or *.
	Prefix string `json:"prefix,omitempty"`
	Host   string `json:"host,omitempty"` // goes before the product's
}
