package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/platform/storage/postgres"
)

// variable is one environment variable that sluice reads.
type variable struct{ name, fallback, help string }

// variables lists them all; the README's table is checked against it.
var variables = []variable{
	{"SLUICE_GATEWAY_ADDR", "127.0.0.1:8080", "where the gateway listens"},
	{"SLUICE_RUNTIME_ADDR", "127.0.0.1:8090", "where the edge listens for the chat runtime"},
	{"SLUICE_ADMIN_ADDR", "127.0.0.1:9090", "where the admin API listens"},
	{"SLUICE_ADMIN_TRUSTED_PROXIES", "", "networks of the proxies in front of the admin API, separated by commas: the client is who they name in X-Forwarded-For; empty: the client is the peer of the connection"},
	{"SLUICE_METRICS_TOKEN", "", "token that scrapers send (`Authorization: Bearer`) to read /metrics of the admin API; several, separated by commas, are all valid; empty: only this machine may read it"},
	{"SLUICE_XDS_ADDR", "127.0.0.1:18000", "where the control plane serves edges: xDS and the key feed; for an edge, the addresses of all replicas, separated by commas"},
	{"SLUICE_TLS_CERT", "", "PEM file with the certificate that clients see at edges, and its chain; empty: plain text. A replaced file is loaded at once."},
	{"SLUICE_TLS_KEY", "", "PEM file with its private key"},
	{"SLUICE_HTTP3", "", "1: HTTP/3 too, on the same ports over UDP; requires a certificate"},
	{"SLUICE_XDS_TLS_DIR", "", "folder made by `sluice certs`, or one with the same files (ca.pem, and controlplane.pem, .key or EDGE.pem, .key): mutual TLS between edges and the control plane; empty: plain text"},
	{"SLUICE_XDS_INSECURE", "", "what edges and the control plane may do beyond this machine: plain (no TLS), open (serve the key feed without a token), or plain,open; empty: neither, so they refuse to start"},
	{"SLUICE_API_LISTEN", "127.0.0.1:18001", "where the public API listens, for edges only"},
	{"SLUICE_RUNTIME_LISTEN", "127.0.0.1:18002", "where the chat runtime listens, for edges only"},
	{"SLUICE_MEDIA_LISTEN", "127.0.0.1:18003", "where the reference product listens, for edges only"},
	{"SLUICE_API_UPSTREAM", "", "for the control plane: where edges reach the public API of every replica, separated by commas, the same on all replicas; empty: SLUICE_API_LISTEN"},
	{"SLUICE_RUNTIME_UPSTREAM", "", "the same for the chat runtimes; empty: SLUICE_RUNTIME_LISTEN"},
	{"SLUICE_MEDIA_UPSTREAM", "", "the same for the reference product, which workers call there too; empty: SLUICE_MEDIA_LISTEN"},
	{"SLUICE_MEDIA_ENGINE", "", "path of MediaMTX; empty: PATH, then the pinned tool; off: none, so streams cannot be published"},
	{"SLUICE_RTMP_ADDR", "127.0.0.1:1935", "where the media engine accepts RTMP"},
	{"SLUICE_SRT_ADDR", "127.0.0.1:8890", "where it accepts SRT (UDP)"},
	{"SLUICE_WEBRTC_ADDR", "127.0.0.1:8889", "where it accepts WebRTC signalling (WHIP and WHEP), which comes through the gateway"},
	{"SLUICE_WEBRTC_MEDIA_ADDR", "127.0.0.1:8189", "where it sends and receives WebRTC media (UDP)"},
	{"SLUICE_HLS_LISTEN", "127.0.0.1:18004", "where it serves HLS, for the product only"},
	{"SLUICE_ENGINE_API_LISTEN", "127.0.0.1:18005", "where it serves its own API, for `sluice engine` only"},
	{"SLUICE_FFMPEG", "", "path of ffmpeg; empty: PATH, then the pinned tool; off: none, so videos are not converted"},
	{"SLUICE_MEDIA_SANDBOX", "", "required: uploads are refused (501) where the kernel cannot sandbox the processes that read and convert them; empty: as much of the sandbox as the kernel supports, see the log"},
	{"SLUICE_WORKER_LISTEN", "127.0.0.1:18006", "where a worker serves /metrics and /health"},
	{"SLUICE_ENVOY_ADMIN_ADDR", "127.0.0.1:9901", "where Envoy's admin interface listens"},
	{"SLUICE_EDGES", "1", "how many edges `up` starts, on ports 100 apart"},
	{"SLUICE_EDGE_NAME", "edge-1", "name of this edge in the fleet"},
	{"SLUICE_EDGE_MAX_STATE_AGE", "24h", "how long an edge keeps serving without contact to any control plane, including after a restart"},
	{"SLUICE_EDGE_METRICS_ADDR", "127.0.0.1:9902", "where the edge's agent serves /metrics and /health; off: not served"},
	{"SLUICE_EDGE_CONCURRENCY", "0", "worker threads of Envoy; 0: one for each CPU"},
	{"SLUICE_ENVOY", "", "path of Envoy; empty: PATH, then the pinned tool"},
	{"SLUICE_STATE_DIR", ".sluice", "where a local stack keeps data, logs and tools"},
	{"SLUICE_WASM_DIR", "", "folder named wasm with the built filters; empty: wasm in the state folder"},
	{"SLUICE_DATABASE_URL", "", "PostgreSQL; empty: `up` starts a private server"},
	{"SLUICE_DATABASE_LOGINS", "", "users that `sluice migrate` and `sluice seed` create, each as PROCESS:USER:PASSWORD, separated by commas; PROCESS is controlplane, worker, runtime, media or backup"},
	{"SLUICE_GATEWAY_INTERNAL_URL", "", "where our own services call the gateway; empty: http:// and SLUICE_GATEWAY_ADDR, or with a certificate the public address"},
	{"SLUICE_MCP_HOSTS", "", "more host names under which /mcp of the gateway and the runtime may be called, separated by commas"},
	{"SLUICE_PUBLIC_URL", "", "public address of the gateway, for links; empty: http:// or https:// and SLUICE_GATEWAY_ADDR"},
	{"SLUICE_RUNTIME_PUBLIC_URL", "", "public address of the chat runtime, for links; empty: http:// or https:// and SLUICE_RUNTIME_ADDR"},
	{"SLUICE_REGION", "local", "region that /v1/health reports"},
	{"SLUICE_IDENTITY_SECRETS", "", "64 hexadecimal digits each, separated by commas: the first signs identity headers, all verify them; NAME:DIGITS belongs to one product, see docs/operations.md"},
	{"SLUICE_IDENTITY_V1", "", "for the control plane: products, separated by commas, that verify identity headers themselves and only know form v1, which is signed with the platform's secret"},
	{"SLUICE_SECRETS_KEY", "", "64 hexadecimal digits each, separated by commas: the first encrypts stored secrets and signing keys, all decrypt; media:DIGITS belongs to the media product, see docs/operations.md"},
	{"SLUICE_FEED_TOKEN", "", "token that edges must send to read the key feed; several, separated by commas: an edge sends the first, a control plane accepts any; empty: none"},
	{"SLUICE_WEBHOOK_ALLOW_CIDRS", "", "private networks that webhooks may call, separated by commas"},
	{"SLUICE_UPSTREAM_ALLOW_CIDRS", "any", "private networks that upstreams of the configuration may be in, separated by commas; any: all; none: public addresses only"},
	{"SLUICE_X402_SETTLEMENT", "ledger", "how payments settle: ledger (for tests, no money moves), facilitator or rpc; see docs/x402.md"},
	{"SLUICE_X402_FACILITATOR_URL", "", "base URL of the facilitator that settles payments"},
	{"SLUICE_X402_RPC_URL", "", "JSON-RPC node through which payments settle"},
	{"SLUICE_X402_SIGNER_KEY", "", "private key, 64 hexadecimal digits, of the account that pays the gas"},
	{"SLUICE_X402_CONFIRMATIONS", "3", "number of blocks, its own included, after which a settlement is final"},
	{"SLUICE_X402_MAX_GAS", "300000", "the most gas that a settlement by rpc may use; one that needs more is refused"},
	{"SLUICE_X402_MAX_FEE_GWEI", "50", "the highest price per unit of gas, tip included; while the chain's price is higher, settlements wait"},
	{"SLUICE_MODEL_UPSTREAM", "", "base URL of an OpenAI-compatible provider; empty: the built-in echo-1 model"},
	{"SLUICE_MODEL_UPSTREAM_KEY", "", "key for that provider; empty: none is sent, or, with SLUICE_RUNTIME_STANDALONE, the caller's"},
	{"SLUICE_MODEL_PROVIDERS", "", "file that lists several providers, instead of those two; see docs/runtime.md"},
	{"SLUICE_CHAT_ECHO", "auto", "the built-in models echo-1 and echo-1-slow: on, off, or auto: on if no provider is configured"},
	{"SLUICE_CHAT_STREAMS", "2048", "concurrent completions of a runtime, each with up to 64 KiB of request; a longer request counts as several, and an account may use at most a quarter"},
	{"SLUICE_RUNTIME_STANDALONE", "", "1: the runtime also serves requests with a bearer token that did not come through an edge; they never reach a provider with your key"},
	{"SLUICE_CHAT_FIRST_EVENT", "2m", "how long a provider may take to start its answer"},
	{"SLUICE_CHAT_IDLE", "5m", "how long it may pause between events"},
	{"SLUICE_CHAT_KEEP_ALIVE", "15s", "silence after which the client is sent a comment"},
	{"SLUICE_MAX_UPLOAD", "2147483648", "largest binary body, in bytes, that the runtime forwards"},
	{"SLUICE_MAX_BODIES", "", "bytes of request bodies that a process holds at once, of which one caller may use a quarter; empty: a quarter of the container's memory, 512 MiB if that has no limit"},
	{"SLUICE_ANNOUNCE", "6s", "how long a process that is told to stop keeps serving but reports unhealthy, so that edges and load balancers drain it; `up`: 0s"},
	{"SLUICE_GRACE", "8s", "how long it then waits for requests in flight, streams included"},
	{"SLUICE_LOG_FORMAT", "text", "how processes log: text or json"},
	{"SLUICE_LOG_LEVEL", "info", "lowest level that is logged: debug, info, warn or error"},
	{"SLUICE_OTLP_ENDPOINT", "", "base URL of a trace collector (OTLP over HTTP), as edges and processes reach it; empty: no tracing"},
	{"SLUICE_TRACE_RATIO", "0.1", "share of requests that are traced, 0 to 1"},
	{"SLUICE_ADMIN_URL", "", "admin API that commands call; empty: that of the local stack"},
	{"SLUICE_ADMIN_KEY", "", "key with scope * that commands use; empty: that of the local stack"},
}

// environment reads variables; nothing else in the program does.
type environment struct {
	process string // whose variables may be read; empty: all
	lookup  func(string) (string, bool)
	now     func() time.Time // the database's time, in processes that have one; nil: the machine's
}

// timed returns e with the clock of the database behind pool, which is followed
// until ctx ends.
func (e environment) timed(ctx context.Context, pool *pgxpool.Pool) environment {
	c := postgres.NewClock(ctx, pool)
	go c.Run(ctx)
	e.now = c.Now
	return e
}

// get returns the value of a variable, or its fallback when it is unset or empty.
func (e environment) get(name string) string {
	if e.process != "" && !reads(e.process, name) {
		panic("process " + e.process + " reads " + name + ", which is not in its list")
	}
	for _, v := range variables {
		if v.name == name {
			if s, ok := e.lookup(name); ok && s != "" {
				return s
			}
			return v.fallback
		}
	}
	panic("variable " + name + " is not in the table")
}

// require returns a variable that must be set for a process.
func (e environment) require(name string) (string, error) {
	if s := e.get(name); s != "" {
		return s, nil
	}
	return "", fmt.Errorf("%s is not set: `sluice up` sets it; a process on its own needs it", name)
}

// with returns e with some variables set.
func (e environment) with(set map[string]string) environment {
	return environment{process: e.process, now: e.now, lookup: func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return e.lookup(name)
	}}
}

// number reads a variable that is a number in min..max.
func (e environment) number(name string, min, max int) (int, error) {
	n, err := strconv.Atoi(e.get(name))
	if err != nil || n < min || n > max {
		return 0, fmt.Errorf("%s is %q: expected a number from %d to %d", name, e.get(name), min, max)
	}
	return n, nil
}

// durations reads variables that are times such as 30s, more than nothing.
func (e environment) durations(names map[string]*time.Duration) error {
	var errs []error
	for name, into := range names {
		d, err := time.ParseDuration(e.get(name))
		if err != nil || d <= 0 {
			errs = append(errs, fmt.Errorf("%s is %q: expected a time such as 30s", name, e.get(name)))
		}
		*into = d
	}
	return errors.Join(errs...)
}

// publicURL is the gateway's address as clients see it.
func (e environment) publicURL() string {
	if u := e.get("SLUICE_PUBLIC_URL"); u != "" {
		return strings.TrimRight(u, "/")
	}
	return e.scheme() + "://" + e.get("SLUICE_GATEWAY_ADDR")
}

// runtimeURL is the chat runtime's address for users.
func (e environment) runtimeURL() string {
	if u := e.get("SLUICE_RUNTIME_PUBLIC_URL"); u != "" {
		return strings.TrimRight(u, "/")
	}
	return e.scheme() + "://" + e.get("SLUICE_RUNTIME_ADDR")
}

// mcpHosts are further names under which the endpoints of MCP may be called.
func (e environment) mcpHosts() []string {
	return strings.FieldsFunc(e.get("SLUICE_MCP_HOSTS"), func(r rune) bool { return r == ',' || r == ' ' })
}

// gatewayURL is the gateway's address as our own services see it. A certificate
// is for the public name, so with one that is what they call.
func (e environment) gatewayURL() string {
	if u := e.get("SLUICE_GATEWAY_INTERNAL_URL"); u != "" {
		return strings.TrimRight(u, "/")
	}
	if e.scheme() == "https" {
		return e.publicURL()
	}
	return "http://" + e.get("SLUICE_GATEWAY_ADDR")
}

// list reads a variable of comma-joined texts as they stand; none of them is empty.
func (e environment) list(name string) (all []string) {
	for part := range strings.SplitSeq(e.get(name), ",") {
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// first reads the first of such a variable; "" for none.
func (e environment) first(name string) string {
	if all := e.list(name); len(all) > 0 {
		return all[0]
	}
	return ""
}

// prefixes reads a variable of comma-joined networks.
func (e environment) prefixes(name string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for part := range strings.SplitSeq(e.get(name), ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		p, err := netip.ParsePrefix(part)
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a network: expected something like 10.0.0.0/8", name, part)
		}
		out = append(out, p)
	}
	return out, nil
}
