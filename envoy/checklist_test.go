package envoy

import (
	"testing"

	"github.com/goccy/go-yaml"
)

// The bootstrap's part of Envoy's list for an edge that the internet reaches;
// the listeners' is in controlplane/gateway/xds/resources/listeners_test.go.
func TestBootstrapFollowsTheEdgeChecklist(t *testing.T) {
	t.Parallel()
	text, err := Render(exampleConfig())
	if err != nil {
		t.Fatal(err)
	}
	var b map[string]any
	if err := yaml.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		path []any
		want any
	}{
		"admin is on loopback":               {[]any{"admin", "address", "socket_address", "address"}, "127.0.0.1"},
		"admin answers in an overload":       {[]any{"admin", "ignore_global_conn_limit"}, true},
		"memory is watched often":            {[]any{"overload_manager", "refresh_interval"}, "0.25s"},
		"the heap is bounded":                {[]any{"overload_manager", "resource_monitors", 0, "typed_config", "max_heap_size_bytes"}, uint64(2 << 30)},
		"connections are bounded":            {[]any{"overload_manager", "resource_monitors", 1, "typed_config", "max_active_downstream_connections"}, uint64(50_000)},
		"waiting gets shorter":               {[]any{"overload_manager", "actions", 0, "name"}, "envoy.overload_actions.reduce_timeouts"},
		"the largest streams are cut":        {[]any{"overload_manager", "actions", 1, "name"}, "envoy.overload_actions.reset_high_memory_stream"},
		"memory of streams is accounted":     {[]any{"overload_manager", "buffer_factory_config", "minimum_account_to_track_power_of_two"}, uint64(20)},
		"idle connections go":                {[]any{"overload_manager", "actions", 2, "name"}, "envoy.overload_actions.disable_http_keepalive"},
		"memory is returned":                 {[]any{"overload_manager", "actions", 3, "name"}, "envoy.overload_actions.shrink_heap"},
		"new requests are refused":           {[]any{"overload_manager", "actions", 4, "name"}, "envoy.overload_actions.stop_accepting_requests"},
		"new connections are refused":        {[]any{"overload_manager", "loadshed_points", 0, "name"}, "envoy.load_shed_points.tcp_listener_accept"},
		"HTTP/2 clients are sent away":       {[]any{"overload_manager", "loadshed_points", 1, "name"}, "envoy.load_shed_points.http2_server_go_away_on_dispatch"},
		"the gateway's connections":          {[]any{"layered_runtime", "layers", 0, "static_layer", "resource_limits", "listener", "gateway", "connection_limit"}, uint64(50_000)},
		"the runtime's connections":          {[]any{"layered_runtime", "layers", 0, "static_layer", "resource_limits", "listener", "runtime", "connection_limit"}, uint64(50_000)},
		"resets of streams are bounded":      {[]any{"layered_runtime", "layers", 0, "static_layer", "overload", "premature_reset_total_stream_count"}, uint64(200)},
		"connections take turns":             {[]any{"layered_runtime", "layers", 0, "static_layer", "http", "max_requests_per_io_cycle"}, uint64(8)},
		"long paths are expressions":         {[]any{"layered_runtime", "layers", 0, "static_layer", "re2", "max_program_size", "error_level"}, uint64(4096)},
		"xDS does not buffer without bounds": {[]any{"static_resources", "clusters", 0, "per_connection_buffer_limit_bytes"}, uint64(1 << 20)},
		"the feed does not either":           {[]any{"static_resources", "clusters", 1, "per_connection_buffer_limit_bytes"}, uint64(1 << 20)},
		"a crash costs no other program":     {[]any{"bootstrap_extensions", 0, "typed_config", "config", "failure_policy"}, "FAIL_RELOAD"},
		"a worker that hangs is counted":     {[]any{"watchdogs", "worker_watchdog", "megamiss_timeout"}, "2s"},
		"its thread is not aborted":          {[]any{"watchdogs", "worker_watchdog", "kill_timeout"}, nil},
		"a main thread that hangs ends":      {[]any{"watchdogs", "main_thread_watchdog", "kill_timeout"}, "60s"},
	} {
		if got := at(b, c.path); got != c.want {
			t.Errorf("not so: %s: %v is %v (%T), want %v", what, c.path, got, got, c.want)
		}
	}
}

// at follows a path of keys and indexes; nil when it leads nowhere.
func at(v any, path []any) any {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

func TestAdminIsOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for addr, ok := range map[string]bool{
		"127.0.0.1:9901": true, "127.9.9.9:1": true, "[::1]:9901": true,
		"0.0.0.0:9901": false, ":9901": false, "10.0.0.1:9901": false, "[::]:9901": false, "admin.internal:9901": false,
	} {
		cfg := exampleConfig()
		cfg.AdminAddr = addr
		if _, err := Render(cfg); (err == nil) != ok {
			t.Errorf("admin on %s: %v", addr, err)
		}
	}
}
