package app

import (
	"slices"
	"strings"
)

// The processes of a platform, by their commands.
var processNames = []string{"controlplane", "worker", runtimeProcess, "media", "engine", "edge"}

const runtimeProcess = "runtime"

// variable is one environment variable that sluice reads. readers are the processes
// that read it; "": `up`, or a command. `up` gives each process those that it reads
// and no others; one that reads another's fails.
type variable struct{ name, fallback, readers, help string }

// variables lists them all; the README's table is checked against it.
var variables = []variable{
	{"SLUICE_GATEWAY_ADDR", "127.0.0.1:8080", "controlplane worker runtime media engine edge", "where the gateway listens"},
	{"SLUICE_RUNTIME_ADDR", "127.0.0.1:8090", "controlplane runtime edge", "where the edge listens for the chat runtime"},
	{"SLUICE_ADMIN_ADDR", "127.0.0.1:9090", "controlplane", "where the admin API listens"},
	{"SLUICE_ADMIN_TRUSTED_PROXIES", "", "controlplane", "networks of the proxies before the admin API, joined by commas: whom they name in X-Forwarded-For is who calls; empty: the peer of the connection calls"},
	{"SLUICE_METRICS_TOKEN", "", "controlplane", "token that scrapers show (`Authorization: Bearer`) to read /metrics of the admin API; several, joined by commas: each; empty: it is for this machine only"},
	{"SLUICE_XDS_ADDR", "127.0.0.1:18000", "controlplane edge", "where the control plane serves edges: xDS and the key feed; for an edge, of all replicas, joined by commas"},
	{"SLUICE_TLS_CERT", "", "controlplane worker runtime media engine edge", "PEM file with the certificate that clients see at edges, and its chain; empty: plain text. Replaced files are taken at once."},
	{"SLUICE_TLS_KEY", "", "edge", "PEM file with its key"},
	{"SLUICE_HTTP3", "", "edge", "1: HTTP/3 too, on the same ports of UDP; needs a certificate"},
	{"SLUICE_XDS_TLS_DIR", "", "controlplane edge", "folder of `sluice certs` or alike (ca.pem, and controlplane.pem, .key or EDGE.pem, .key): edges and the control plane show each other certificates; empty: plain text"},
	{"SLUICE_XDS_INSECURE", "", "controlplane edge", "what edges and the control plane may do on addresses that are not this machine's: plain (speak without certificates), open (serve the key feed without a token), or both, joined by a comma; empty: they refuse to start so"},
	{"SLUICE_API_LISTEN", "127.0.0.1:18001", "controlplane", "where the public API listens, for edges only"},
	{"SLUICE_RUNTIME_LISTEN", "127.0.0.1:18002", "controlplane runtime", "where the chat runtime listens, for edges only"},
	{"SLUICE_MEDIA_LISTEN", "127.0.0.1:18003", "controlplane worker media", "where the reference product listens, for edges only"},
	{"SLUICE_API_UPSTREAM", "", "controlplane", "for the control plane: where edges reach the public API of every replica, joined by commas, the same for all replicas; empty: SLUICE_API_LISTEN"},
	{"SLUICE_RUNTIME_UPSTREAM", "", "controlplane", "the same of the chat runtimes; empty: SLUICE_RUNTIME_LISTEN"},
	{"SLUICE_MEDIA_UPSTREAM", "", "controlplane worker", "the same of the reference product, which workers call there too; empty: SLUICE_MEDIA_LISTEN"},
	{"SLUICE_MEDIA_ENGINE", "", "worker media engine", "MediaMTX's binary; empty: PATH, then the pinned tool; off: none, so that streams cannot be published"},
	{"SLUICE_RTMP_ADDR", "127.0.0.1:1935", "worker media engine", "where the media engine takes RTMP"},
	{"SLUICE_SRT_ADDR", "127.0.0.1:8890", "worker media engine", "where it takes SRT (UDP)"},
	{"SLUICE_WEBRTC_ADDR", "127.0.0.1:8889", "worker media engine", "where it takes the requests of WebRTC (WHIP and WHEP), which come through the gateway"},
	{"SLUICE_WEBRTC_MEDIA_ADDR", "127.0.0.1:8189", "engine", "where it sends and takes the pictures of WebRTC (UDP)"},
	{"SLUICE_HLS_LISTEN", "127.0.0.1:18004", "worker media engine", "where it serves HLS, for the product only"},
	{"SLUICE_ENGINE_API_LISTEN", "127.0.0.1:18005", "engine", "where it serves its own API, for `sluice engine` only"},
	{"SLUICE_FFMPEG", "", "worker media engine", "ffmpeg's binary; empty: PATH, then the pinned tool; off: none, so that videos are not converted"},
	{"SLUICE_MEDIA_SANDBOX", "", "worker media engine", "required: films are refused (501) where the kernel cannot keep what reads and converts them from network and files; empty: it does what it can, and the log says what"},
	{"SLUICE_WORKER_LISTEN", "127.0.0.1:18006", "worker", "where a worker serves /metrics and /health"},
	{"SLUICE_ENVOY_ADMIN_ADDR", "127.0.0.1:9901", "edge", "where Envoy's admin interface listens"},
	{"SLUICE_EDGES", "1", "", "how many edges `up` starts, on ports 100 apart"},
	{"SLUICE_EDGE_NAME", "edge-1", "edge", "name of this edge in the fleet"},
	{"SLUICE_EDGE_MAX_STATE_AGE", "24h", "edge", "for how long an edge serves without a word from any control plane, also after a restart"},
	{"SLUICE_EDGE_METRICS_ADDR", "127.0.0.1:9902", "edge", "where the edge's agent serves /metrics and /health; off: nowhere"},
	{"SLUICE_EDGE_CONCURRENCY", "0", "edge", "worker threads of Envoy; 0: one for each CPU"},
	{"SLUICE_ENVOY", "", "edge", "Envoy's binary; empty: PATH, then the pinned tool"},
	{"SLUICE_STATE_DIR", ".sluice", "worker media engine edge", "where a local stack keeps data, logs and tools"},
	{"SLUICE_WASM_DIR", "", "edge", "folder named wasm with the built filters; empty: wasm in the state folder"},
	{"SLUICE_DATABASE_URL", "", "controlplane worker runtime media engine", "PostgreSQL; empty: `up` starts a private server"},
	{"SLUICE_DATABASE_LOGINS", "", "", "users that `sluice migrate` and `sluice seed` make, PROCESS:USER:PASSWORD each, joined by commas; PROCESS is controlplane, worker, runtime, media or backup"},
	{"SLUICE_GATEWAY_INTERNAL_URL", "", "controlplane runtime", "where services of ours call the gateway; empty: http:// and SLUICE_GATEWAY_ADDR, or with a certificate the public address"},
	{"SLUICE_MCP_HOSTS", "", "controlplane runtime", "further host names under which /mcp, of the gateway and of the runtime, may be called, joined by commas"},
	{"SLUICE_PUBLIC_URL", "", "controlplane worker runtime media engine edge", "public address of the gateway, for links; empty: http:// or https:// and SLUICE_GATEWAY_ADDR"},
	{"SLUICE_RUNTIME_PUBLIC_URL", "", "controlplane runtime", "public address of the chat runtime, for links; empty: http:// or https:// and SLUICE_RUNTIME_ADDR"},
	{"SLUICE_REGION", "local", "controlplane", "region that /v1/health names"},
	{"SLUICE_IDENTITY_SECRETS", "", "controlplane worker runtime media engine", "64 hexadecimal digits each, joined by commas: the first signs identity headers, all verify; NAME:DIGITS is one product's own, see docs/operations.md"},
	{"SLUICE_IDENTITY_V1", "", "controlplane", "for the control plane: products, joined by commas, that verify identity headers themselves and know only the form v1, which the platform's secret signs"},
	{"SLUICE_SECRETS_KEY", "", "controlplane worker media engine", "64 hexadecimal digits each, joined by commas: the first encrypts stored secrets and the keys that sign tokens, all decrypt; media:DIGITS is the media product's own, see docs/operations.md"},
	{"SLUICE_FEED_TOKEN", "", "controlplane edge", "token that edges must show to read the key feed; several, joined by commas: an edge shows the first, a control plane takes each; empty: none"},
	{"SLUICE_WEBHOOK_ALLOW_CIDRS", "", "controlplane worker media engine", "private networks that webhooks may call, joined by commas"},
	{"SLUICE_UPSTREAM_ALLOW_CIDRS", "any", "controlplane", "private networks that products of the configuration may be in, joined by commas; any: all; none: public addresses only"},
	{"SLUICE_X402_SETTLEMENT", "ledger", "controlplane worker", "how payments settle: ledger (for tests, no money moves), facilitator or rpc; see docs/x402.md"},
	{"SLUICE_X402_FACILITATOR_URL", "", "controlplane worker", "base URL of the facilitator that settles payments"},
	{"SLUICE_X402_RPC_URL", "", "controlplane worker", "JSON-RPC node through which payments settle"},
	{"SLUICE_X402_SIGNER_KEY", "", "controlplane worker", "private key, 64 hexadecimal digits, of the account that pays for gas"},
	{"SLUICE_X402_CONFIRMATIONS", "3", "controlplane worker", "how many blocks must hold and follow a settlement"},
	{"SLUICE_X402_MAX_GAS", "300000", "controlplane worker", "the most gas that a settlement by rpc may take; one that needs more is refused"},
	{"SLUICE_X402_MAX_FEE_GWEI", "50", "controlplane worker", "the most that it may pay for a unit of gas, tip included; while the chain asks more, settlements wait"},
	{"SLUICE_MODEL_UPSTREAM", "", "runtime", "base URL of an OpenAI-compatible provider; empty: the built-in echo-1 model"},
	{"SLUICE_MODEL_UPSTREAM_KEY", "", "runtime", "key for that provider; empty: none is sent, or, by SLUICE_RUNTIME_STANDALONE, the caller's"},
	{"SLUICE_MODEL_PROVIDERS", "", "runtime", "file that names several providers, in place of those two; see docs/runtime.md"},
	{"SLUICE_CHAT_ECHO", "auto", "runtime", "the built-in echo-1 and echo-1-slow: on, off, or auto: where no provider is configured"},
	{"SLUICE_CHAT_STREAMS", "2048", "runtime", "completions that a runtime makes at once, with 64 KiB of request each; a longer request counts as several, and an account has at most a quarter"},
	{"SLUICE_RUNTIME_STANDALONE", "", "runtime", "1: the runtime also serves requests with a bearer token that came through no edge; they reach no provider with a key of yours"},
	{"SLUICE_CHAT_FIRST_EVENT", "2m", "runtime", "how long a provider may take to begin an answer"},
	{"SLUICE_CHAT_IDLE", "5m", "runtime", "how long it may be silent then"},
	{"SLUICE_CHAT_KEEP_ALIVE", "15s", "runtime", "silence after which a client gets a comment"},
	{"SLUICE_MAX_UPLOAD", "2147483648", "runtime", "bytes of a binary body that the runtime passes on"},
	{"SLUICE_MAX_BODIES", "", "controlplane runtime media", "bytes of request bodies that a process holds at once, a caller at most a quarter of them; empty: a quarter of the container's memory, 512 MiB where that has no limit"},
	{"SLUICE_ANNOUNCE", "6s", "controlplane runtime media edge", "how long a process that is told to stop goes on serving, but says that it is not well, so that edges, or what stands before edges, turn away; `up`: 0s"},
	{"SLUICE_GRACE", "8s", "controlplane runtime media edge", "how long it then waits for the requests under way, streams among them"},
	{"SLUICE_LOG_FORMAT", "text", "controlplane worker runtime media engine edge", "how processes log: text or json"},
	{"SLUICE_LOG_LEVEL", "info", "controlplane worker runtime media engine edge", "from which level on: debug, info, warn or error"},
	{"SLUICE_OTLP_ENDPOINT", "", "controlplane worker runtime media", "base URL of a collector of traces (OTLP over HTTP), as edges and processes reach it; empty: nothing is traced"},
	{"SLUICE_TRACE_RATIO", "0.1", "controlplane worker runtime media", "which part of the requests is traced, 0 to 1"},
	{"SLUICE_ADMIN_URL", "", "controlplane", "admin API that commands call; empty: the local stack's"},
	{"SLUICE_ADMIN_KEY", "", "", "key with scope * that commands use; empty: the local stack's"},
}

// lookUp finds a variable in the table.
func lookUp(name string) (v variable, ok bool) {
	i := slices.IndexFunc(variables, func(v variable) bool { return v.name == name })
	if i < 0 {
		return v, false
	}
	return variables[i], true
}

// readBy reports whether a process reads v.
func (v variable) readBy(process string) bool {
	return slices.Contains(strings.Fields(v.readers), process)
}

// systemVariables are those that are not ours and every process gets: the system's
// and Go's. The runtime gets all that are not ours, because its providers' keys stand
// in variables of the operator's choice.
var systemVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GOCOVERDIR", "GORACE", "LD_LIBRARY_PATH",
}

// passedTo reports whether a process of a local stack is given a variable.
func passedTo(process, name string) bool {
	if v, ok := lookUp(name); ok {
		return v.readBy(process)
	}
	return process == runtimeProcess || strings.HasPrefix(name, "LC_") || slices.Contains(systemVariables, name)
}
