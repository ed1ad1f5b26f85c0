package app

import (
	"slices"
	"strings"

	"sluice.dev/sluice/media/engines"
)

// The processes of a platform, by their commands.
var processNames = []string{"controlplane", "worker", runtimeProcess, "media", "engine", "edge"}

const runtimeProcess = "runtime"

// variable is one environment variable that sluice reads. readers are the processes
// that read it; "": `up`, or a command. `up` gives each process those that it reads
// and no others; one that reads another's fails.
type variable struct{ name, fallback, readers, help string }

// variables lists them all; docs/settings.md is checked against it.
var variables = []variable{
	{"SLUICE_GATEWAY_ADDR", "127.0.0.1:8080", "controlplane worker runtime media engine edge", "where the gateway listens"},
	{"SLUICE_RUNTIME_ADDR", "127.0.0.1:8090", "controlplane runtime edge", "where the edge listens for the chat runtime"},
	{"SLUICE_ADMIN_ADDR", "127.0.0.1:9090", "controlplane", "where the admin API listens"},
	{"SLUICE_ADMIN_TRUSTED_PROXIES", "", "controlplane", "networks of the proxies in front of the admin API, separated by commas: the client is who they name in X-Forwarded-For; empty: the client is the peer of the connection"},
	{"SLUICE_METRICS_TOKEN", "", "controlplane", "token that scrapers send (`Authorization: Bearer`) to read /metrics of the admin API; several, separated by commas, are all valid; empty: only this machine may read it"},
	{"SLUICE_XDS_ADDR", "127.0.0.1:18000", "controlplane edge", "where the control plane serves edges: xDS and the key feed; for an edge, the addresses of all replicas, separated by commas"},
	{"SLUICE_TLS_CERT", "", "controlplane worker runtime media engine edge", "PEM file with the certificate that clients see at edges, and its chain, unless the configuration has one for the name that they ask for; self-signed: one that each edge makes; empty: plain text. A replaced file is loaded at once."},
	{"SLUICE_TLS_KEY", "", "engine edge", "PEM file with its private key"},
	{"SLUICE_PLAIN_ADDR", "", "edge", "where an edge with a certificate listens without encryption: it answers ACME's http-01 there and redirects everything else to https; empty: nowhere"},
	{"SLUICE_ACME_DNS_HOOK", "", "controlplane", "program (an absolute path) or https:// address that sets records of DNS for ACME's dns-01; see docs/certificates.md"},
	{"SLUICE_ACME_CA", "", "controlplane", "PEM file with the authority that signs for ACME directories of your own; empty: those that the system trusts"},
	{"SLUICE_HTTP3", "", "edge", "1: HTTP/3 too, on the same ports over UDP; requires a certificate"},
	{"SLUICE_XDS_TLS_DIR", "", "controlplane edge", "folder made by `sluice certs`, or one with the same files (ca.pem, and controlplane.pem, .key or EDGE.pem, .key): mutual TLS between edges and the control plane; empty: plain text"},
	{"SLUICE_XDS_INSECURE", "", "controlplane edge", "what edges and the control plane may do beyond this machine: plain (no TLS), open (serve the key feed without a token), or plain,open; empty: neither, so they refuse to start"},
	{"SLUICE_API_LISTEN", "127.0.0.1:18001", "controlplane", "where the public API listens, for edges only"},
	{"SLUICE_RUNTIME_LISTEN", "127.0.0.1:18002", "controlplane runtime", "where the chat runtime listens, for edges only"},
	{"SLUICE_MEDIA_LISTEN", "127.0.0.1:18003", "controlplane worker media", "where the reference product listens, for edges only"},
	{"SLUICE_API_UPSTREAM", "", "controlplane", "for the control plane: where edges reach the public API of every replica, separated by commas, the same on all replicas; empty: SLUICE_API_LISTEN"},
	{"SLUICE_RUNTIME_UPSTREAM", "", "controlplane", "the same for the chat runtimes; empty: SLUICE_RUNTIME_LISTEN"},
	{"SLUICE_MEDIA_UPSTREAM", "", "controlplane worker", "the same for the reference product, which workers call there too; empty: SLUICE_MEDIA_LISTEN"},
	{"SLUICE_MEDIA_ENGINE", "", "worker media engine", "path of MediaMTX; empty: PATH, then the pinned tool; off: none, so streams cannot be published"},
	{"SLUICE_RTMP_ADDR", "127.0.0.1:1935", "worker media engine", "where the media engine accepts RTMP"},
	{"SLUICE_SRT_ADDR", "127.0.0.1:8890", "worker media engine", "where it accepts SRT (UDP)"},
	{"SLUICE_WEBRTC_ADDR", "127.0.0.1:8889", "worker media engine", "where it accepts WebRTC signalling (WHIP and WHEP), which comes through the gateway"},
	{"SLUICE_WEBRTC_MEDIA_ADDR", "127.0.0.1:8189", "engine", "where it sends and receives WebRTC media (UDP)"},
	{"SLUICE_HLS_LISTEN", "127.0.0.1:18004", "worker media engine", "where it serves HLS, for the product only"},
	{"SLUICE_MEDIA_PARTS", "200ms", "engine", "how long the parts are in which segments can be had while they grow, from 100ms to 1s, for low-latency DASH; off: none"},
	{"SLUICE_MOQ_ADDR", "127.0.0.1:4443", "worker media engine", "where `sluice engine` speaks MoQ, over WebTransport and QUIC (UDP); off: nowhere"},
	{"SLUICE_ENGINE_API_LISTEN", "127.0.0.1:18005", "engine", "where it serves its own API, for `sluice engine` only"},
	{"SLUICE_ENGINE_LISTEN", "127.0.0.1:18007", "engine", "where `sluice engine` serves /metrics and /health"},
	{"SLUICE_ENGINE_HOST", "", "worker media engine", "name or address at which the product reaches the media engine, on the ports of SLUICE_HLS_LISTEN and SLUICE_WEBRTC_ADDR; empty: at those addresses"},
	{"SLUICE_INGEST_HOST", "", "worker media engine", "public name or address of the media engine, which publishers are told and WebRTC's pictures go to; empty: its addresses, or where they are 0.0.0.0 the host of SLUICE_PUBLIC_URL"},
	{"SLUICE_SIP_ADDR", "127.0.0.1:5060", "worker media engine", "where telephones call (SIP, UDP and TCP); off: nobody answers"},
	{"SLUICE_SIP_MEDIA_PORTS", "20000-20199", "engine", "UDP ports for the sound of calls, one for each, at the address of SLUICE_SIP_ADDR"},
	{"SLUICE_SIP_PUBLIC_IP", "", "engine", "address that telephones are told for signals and sound, such as that of a NAT; empty: that of SLUICE_SIP_ADDR, or of the machine on the way to each"},
	{"SLUICE_SIP_TRUNK", "", "worker media engine", "provider that calls go out through, such as sip:USER@sip.example:5060;transport=tcp; empty: no calls go out"},
	{"SLUICE_SIP_TRUNK_PREFIXES", "", "worker media engine", "how numbers begin that calls may go out to, such as +49,+4366, or names of the trunk's; +: every number; empty: nobody is called"},
	{"SLUICE_SIP_TRUNK_PASSWORD", "", "engine", "password for the trunk"},
	{"SLUICE_RTSP_LISTEN", "127.0.0.1:18554", "engine", "where it serves RTSP, for `sluice engine`, its parts and the bridges that it starts"},
	{"SLUICE_TRANSPORT_INTERFACES", "", "worker media engine", "interfaces of the engine's machine, separated by commas, that flows of AES67 (Dante) and connections of OMT may use; the first one sends; empty: none"},
	{"SLUICE_TRANSPORT_ALLOW_CIDRS", "", "worker media engine", "addresses that such flows and their peers may have, separated by commas, such as 239.69.0.0/16; empty: none"},
	{"SLUICE_TRANSPORT_CLOCK", "", "worker media engine", "what the clock of the engine's machine follows, as SDP says it: local, or ptp=IEEE1588-2008:… where a PTP daemon sets it; empty: local"},
	{"SLUICE_NDI_BRIDGE", "", "worker media engine", "program (an absolute path) that speaks NDI; see docs/broadcast.md; empty: no NDI"},
	{"SLUICE_OMT_BRIDGE", "", "worker media engine", "program (an absolute path) that speaks OMT with pictures; empty: sound alone, by the built-in"},
	{"SLUICE_FFMPEG", "", "worker media engine", "path of ffmpeg; empty: PATH, then the pinned tool; off: none, so videos are not converted"},
	{"SLUICE_SPEECH", "", "worker media engine", "path of the program that turns speech into text, sherpa-onnx-vad-with-offline-asr, with its library and models beside it; empty: the pinned tool; off: none, so the built-in engine of transcription is missing"},
	{"SLUICE_VOICE", "", "worker media engine", "path of sherpa-onnx-offline-tts, with its library, espeak-ng-data and voices beside it; empty: the pinned one; off: none, so /v1/voice needs another engine"},
	{"SLUICE_VOICES", "", "worker media engine", "folder of further voices, each in a folder of its own as sherpa-onnx has voices of Piper; empty: none"},
	{"SLUICE_TESSERACT", "", "worker media engine", "path of tesseract, with its tessdata beside it; empty: the pinned one; off: none, so /v1/vision reads no text"},
	{"SLUICE_MEDIA_SANDBOX", "", "worker media engine", "required: uploads are refused (501) where the kernel cannot sandbox the processes that read and convert them; empty: as much of the sandbox as the kernel supports, see the log"},
	{"SLUICE_WORKER_LISTEN", "127.0.0.1:18006", "worker", "where a worker serves /metrics and /health"},
	{"SLUICE_ENVOY_ADMIN_ADDR", "127.0.0.1:9901", "edge", "where Envoy's admin interface listens"},
	{"SLUICE_PROFILE", "platform", "controlplane worker edge", "which of its own products a deployment has, the same for all its processes: platform (all) or gateway (no media, chat, schedules and payments); see docs/profiles.md"},
	{"SLUICE_EDGES", "1", "", "how many edges `up` starts, on ports 100 apart"},
	{"SLUICE_EDGE_NAME", "edge-1", "edge", "name of this edge in the fleet"},
	{"SLUICE_EDGE_MAX_STATE_AGE", "24h", "edge", "how long an edge keeps serving without contact to any control plane, including after a restart"},
	{"SLUICE_EDGE_METRICS_ADDR", "127.0.0.1:9902", "edge", "where the edge's agent serves /metrics and /health; off: not served"},
	{"SLUICE_EDGE_CONCURRENCY", "0", "edge", "worker threads of Envoy; 0: one for each CPU"},
	{"SLUICE_ENVOY", "", "edge", "path of Envoy; empty: PATH, then the pinned tool, which `up` fetches if it is missing"},
	{"SLUICE_STATE_DIR", ".sluice", "worker media engine edge", "where a local stack keeps data, logs and tools"},
	{"SLUICE_WASM_DIR", "", "edge", "folder named wasm with filters of your own build; empty: those in the binary"},
	{"SLUICE_DATABASE_URL", "", "controlplane worker runtime media engine", "PostgreSQL, with several hosts where there is a standby; see docs/postgres.md; empty: `up` starts a private server"},
	{"SLUICE_DATABASE_DIRECT_URL", "", "controlplane worker", "the same database past a pooler such as PgBouncer, for LISTEN, locks of a session and migrations; empty: SLUICE_DATABASE_URL"},
	{"SLUICE_DATABASE_LOGINS", "", "", "users that `sluice migrate` and `sluice seed` create, each as PROCESS:USER:PASSWORD, separated by commas; PROCESS is controlplane, worker, runtime, media or backup"},
	{"SLUICE_GATEWAY_INTERNAL_URL", "", "controlplane runtime", "where our own services call the gateway; empty: http:// and SLUICE_GATEWAY_ADDR, or with a certificate the public address"},
	{"SLUICE_MCP_HOSTS", "", "controlplane runtime", "more host names under which /mcp of the gateway and the runtime may be called, separated by commas"},
	{"SLUICE_PUBLIC_URL", "", "controlplane worker runtime media engine edge", "public address of the gateway, for links; empty: http:// or https:// and SLUICE_GATEWAY_ADDR"},
	{"SLUICE_RUNTIME_PUBLIC_URL", "", "controlplane runtime", "public address of the chat runtime, for links; empty: http:// or https:// and SLUICE_RUNTIME_ADDR"},
	{"SLUICE_REGION", "local", "controlplane", "region that /v1/health reports"},
	{"SLUICE_IDENTITY_SECRETS", "", "controlplane worker runtime media engine", "64 hexadecimal digits each, separated by commas: the first signs identity headers, all verify them; NAME:DIGITS belongs to one product, see docs/secrets.md"},
	{"SLUICE_IDENTITY_V1", "", "controlplane", "for the control plane: products, separated by commas, that verify identity headers themselves and only know form v1, which is signed with the platform's secret"},
	{"SLUICE_SECRETS_KEY", "", "controlplane worker media engine", "64 hexadecimal digits each, separated by commas: the first encrypts stored secrets and signing keys, all decrypt; media:DIGITS belongs to the media product, see docs/secrets.md"},
	{"SLUICE_FEED_TOKEN", "", "controlplane edge", "token that edges must send to read the key feed; several, separated by commas: an edge sends the first, a control plane accepts any; empty: none"},
	{"SLUICE_WEBHOOK_ALLOW_CIDRS", "", "controlplane worker media engine", "private networks that webhooks may call, separated by commas"},
	{"SLUICE_UPSTREAM_ALLOW_CIDRS", "any", "controlplane", "private networks that upstreams of the configuration may be in, separated by commas; any: all; none: public addresses only"},
	{"SLUICE_X402_SETTLEMENT", "ledger", "controlplane worker", "how payments settle: ledger (for tests, no money moves), facilitator or rpc; see docs/x402.md"},
	{"SLUICE_X402_FACILITATOR_URL", "", "controlplane worker", "base URL of the facilitator that settles payments"},
	{"SLUICE_X402_RPC_URL", "", "controlplane worker", "JSON-RPC node through which payments settle"},
	{"SLUICE_X402_SIGNER_KEY", "", "controlplane worker", "private key, 64 hexadecimal digits, of the account that pays the gas"},
	{"SLUICE_X402_CONFIRMATIONS", "3", "controlplane worker", "number of blocks, its own included, after which a settlement is final"},
	{"SLUICE_X402_MAX_GAS", "300000", "controlplane worker", "the most gas that a settlement by rpc may use; one that needs more is refused"},
	{"SLUICE_X402_MAX_FEE_GWEI", "50", "controlplane worker", "the highest price per unit of gas, tip included; while the chain's price is higher, settlements wait"},
	{"SLUICE_BILLING_PROVIDER", "auto", "controlplane worker", "who keeps payment methods and charges invoices: stripe, ledger (nobody is charged), or auto: stripe if there is a key; see docs/billing.md"},
	{"SLUICE_STRIPE_KEY", "", "controlplane worker", "secret or restricted key of the account at Stripe"},
	{"SLUICE_STRIPE_KEY_FILE", "", "controlplane worker", "file that holds that key, instead"},
	{"SLUICE_STRIPE_PUBLISHABLE_KEY", "", "controlplane worker", "publishable key of that account, which customers' browsers are told"},
	{"SLUICE_STRIPE_URL", "", "controlplane worker", "base URL of Stripe's API; empty: https://api.stripe.com"},
	{"SLUICE_MODEL_UPSTREAM", "", "runtime", "base URL of an OpenAI-compatible provider; empty: the built-in echo-1 model"},
	{"SLUICE_MODEL_UPSTREAM_KEY", "", "runtime", "key for that provider; empty: none is sent, or, with SLUICE_RUNTIME_STANDALONE, the caller's"},
	{"SLUICE_MODEL_PROVIDERS", "", "runtime", "file that lists several providers, instead of those two; see docs/runtime.md"},
	{"SLUICE_CHAT_ECHO", "auto", "runtime", "the built-in models echo-1 and echo-1-slow: on, off, or auto: on if no provider is configured"},
	{"SLUICE_CHAT_STREAMS", "2048", "runtime", "concurrent completions of a runtime, each with up to 64 KiB of request; a longer request counts as several, and an account may use at most a quarter"},
	{"SLUICE_RUNTIME_STANDALONE", "", "runtime", "1: the runtime also serves requests with a bearer token that did not come through an edge; they never reach a provider with your key"},
	{"SLUICE_CHAT_FIRST_EVENT", "2m", "runtime", "how long a provider may take to start its answer"},
	{"SLUICE_CHAT_IDLE", "5m", "runtime", "how long it may pause between events"},
	{"SLUICE_CHAT_KEEP_ALIVE", "15s", "runtime", "silence after which the client is sent a comment"},
	{"SLUICE_MAX_UPLOAD", "2147483648", "runtime", "largest binary body, in bytes, that the runtime forwards"},
	{"SLUICE_MAX_BODIES", "", "controlplane runtime media", "bytes of request bodies that a process holds at once, of which one caller may use a quarter; empty: a quarter of the container's memory, 512 MiB if that has no limit"},
	{"SLUICE_ANNOUNCE", "6s", "controlplane runtime media edge", "how long a process that is told to stop keeps serving but reports unhealthy, so that edges and load balancers drain it; `up`: 0s"},
	{"SLUICE_GRACE", "8s", "controlplane runtime media edge", "how long it then waits for requests in flight, streams included"},
	{"SLUICE_LOG_FORMAT", "text", "controlplane worker runtime media engine edge", "how processes log: text or json"},
	{"SLUICE_LOG_LEVEL", "info", "controlplane worker runtime media engine edge", "lowest level that is logged: debug, info, warn or error"},
	{"SLUICE_OTLP_ENDPOINT", "", "controlplane worker runtime media", "base URL of a trace collector (OTLP over HTTP), as edges and processes reach it; empty: no tracing"},
	{"SLUICE_TRACE_RATIO", "0.1", "controlplane worker runtime media", "share of requests that are traced, 0 to 1"},
	{"SLUICE_ADMIN_URL", "", "controlplane", "admin API that commands call; empty: that of the local stack"},
	{"SLUICE_ADMIN_KEY", "", "", "key with scope * that commands use; empty: that of the local stack"},
	{"SLUICE_GATEWAY_URL", "", "", "gateway that commands on an account's own things call, such as webhooks; empty: that of the local stack"},
	{"SLUICE_API_KEY", "", "", "API key that they use, and whose account they act for; empty: that of the local stack"},
	{"SLUICE_CONTEXTS", "", "", "file in which `sluice login` keeps contexts; empty: sluice/contexts.yaml in your folder of configuration, such as ~/.config"},
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
// in variables of the operator's choice; the media product and the worker get those in
// which keys of engines may stand.
var systemVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GOCOVERDIR", "GORACE", "LD_LIBRARY_PATH",
}

// passedTo reports whether a process of a local stack is given a variable.
func passedTo(process, name string) bool {
	if v, ok := lookUp(name); ok {
		return v.readBy(process)
	}
	if strings.HasPrefix(name, engines.KeyPrefix) {
		return slices.Contains([]string{"media", "worker", runtimeProcess}, process)
	}
	return process == runtimeProcess || strings.HasPrefix(name, "LC_") || slices.Contains(systemVariables, name)
}
