package main

import (
	"slices"
	"strings"
)

// The processes of a platform, by their commands.
var processNames = []string{"controlplane", "worker", runtimeProcess, "media", "engine", "edge"}

const runtimeProcess = "runtime"

// readers are the processes that read a variable, by its name without SLUICE_.
// `up` gives each process those that it reads and no others; one that reads
// another's fails.
var readers = map[string]string{
	"LOG_FORMAT": "controlplane worker runtime media engine edge",
	"LOG_LEVEL":  "controlplane worker runtime media engine edge",

	"PUBLIC_URL":   "controlplane worker runtime media engine edge",
	"GATEWAY_ADDR": "controlplane worker runtime media engine edge",
	"TLS_CERT":     "controlplane worker runtime media engine edge",

	"DATABASE_URL":        "controlplane worker runtime media engine",
	"IDENTITY_SECRETS":    "controlplane worker runtime media engine",
	"SECRETS_KEY":         "controlplane worker media engine",
	"WEBHOOK_ALLOW_CIDRS": "controlplane worker media engine",
	"OTLP_ENDPOINT":       "controlplane worker runtime media",
	"TRACE_RATIO":         "controlplane worker runtime media",
	"MAX_BODIES":          "controlplane runtime media",
	"ANNOUNCE":            "controlplane runtime media edge",
	"GRACE":               "controlplane runtime media edge",

	"ADMIN_ADDR":            "controlplane",
	"ADMIN_URL":             "controlplane",
	"API_LISTEN":            "controlplane",
	"API_UPSTREAM":          "controlplane",
	"RUNTIME_UPSTREAM":      "controlplane",
	"REGION":                "controlplane",
	"ADMIN_TRUSTED_PROXIES": "controlplane",
	"METRICS_TOKEN":         "controlplane",
	"IDENTITY_V1":           "controlplane",
	"UPSTREAM_ALLOW_CIDRS":  "controlplane",
	"FEED_TOKEN":            "controlplane edge",
	"XDS_ADDR":              "controlplane edge",
	"XDS_TLS_DIR":           "controlplane edge",
	"XDS_INSECURE":          "controlplane edge",
	"RUNTIME_ADDR":          "controlplane runtime edge",
	"RUNTIME_PUBLIC_URL":    "controlplane runtime",
	"RUNTIME_LISTEN":        "controlplane runtime",
	"GATEWAY_INTERNAL_URL":  "controlplane runtime",
	"MCP_HOSTS":             "controlplane runtime",
	"MEDIA_UPSTREAM":        "controlplane worker",
	"MEDIA_LISTEN":          "controlplane worker media",
	"X402_SETTLEMENT":       "controlplane worker",
	"X402_FACILITATOR_URL":  "controlplane worker",
	"X402_RPC_URL":          "controlplane worker",
	"X402_SIGNER_KEY":       "controlplane worker",
	"X402_CONFIRMATIONS":    "controlplane worker",
	"X402_MAX_GAS":          "controlplane worker",
	"X402_MAX_FEE_GWEI":     "controlplane worker",
	"WORKER_LISTEN":         "worker",

	"MODEL_UPSTREAM":     "runtime",
	"MODEL_UPSTREAM_KEY": "runtime",
	"MODEL_PROVIDERS":    "runtime",
	"CHAT_FIRST_EVENT":   "runtime",
	"CHAT_IDLE":          "runtime",
	"CHAT_KEEP_ALIVE":    "runtime",
	"MAX_UPLOAD":         "runtime",
	"CHAT_ECHO":          "runtime",
	"CHAT_STREAMS":       "runtime",
	"RUNTIME_STANDALONE": "runtime",

	"STATE_DIR":         "worker media engine edge",
	"MEDIA_ENGINE":      "worker media engine",
	"MEDIA_SANDBOX":     "worker media engine",
	"FFMPEG":            "worker media engine",
	"RTMP_ADDR":         "worker media engine",
	"SRT_ADDR":          "worker media engine",
	"WEBRTC_ADDR":       "worker media engine",
	"HLS_LISTEN":        "worker media engine",
	"WEBRTC_MEDIA_ADDR": "engine",
	"ENGINE_API_LISTEN": "engine",

	"TLS_KEY":            "edge",
	"HTTP3":              "edge",
	"ENVOY":              "edge",
	"ENVOY_ADMIN_ADDR":   "edge",
	"EDGE_NAME":          "edge",
	"EDGE_MAX_STATE_AGE": "edge",
	"EDGE_METRICS_ADDR":  "edge",
	"EDGE_CONCURRENCY":   "edge",
	"WASM_DIR":           "edge",

	"EDGES":           "", // `up` alone
	"DATABASE_LOGINS": "", // `migrate` and `seed`
	"ADMIN_KEY":       "", // commands
}

const variablePrefix = "SLUICE_"

// reads reports whether a process reads a variable of the table. One that nobody is
// named for is everybody's; a test finds it.
func reads(process, variable string) bool {
	names, listed := readers[strings.TrimPrefix(variable, variablePrefix)]
	return !listed || slices.Contains(strings.Fields(names), process)
}

// systems are the variables that are not ours and every process gets: those of the
// system and of Go. The runtime gets all that are not ours, because its providers'
// keys stand in variables of the operator's choice.
var systems = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GOCOVERDIR", "GORACE", "LD_LIBRARY_PATH",
}

// gets reports whether a process of a local stack is given a variable.
func gets(process, variable string) bool {
	if known(variable) {
		return reads(process, variable)
	}
	return process == runtimeProcess || strings.HasPrefix(variable, "LC_") || slices.Contains(systems, variable)
}

func known(name string) bool {
	return slices.ContainsFunc(variables, func(v variable) bool { return v.name == name })
}
