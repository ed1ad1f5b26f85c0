package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"

	"sluice.dev/sluice/bench/load"
)

// object is a JSON object of Envoy's configuration.
type object = map[string]any

// part is something of the edge's configuration that can be left out to see
// what it costs.
type part struct {
	name string
	drop func(c *config)
}

// config is what a static Envoy is made of: the edge's own, without its filters.
type config struct {
	manager, route, cluster, stats object
}

// without returns a drop that removes fields of the connection manager.
func without(fields ...string) func(*config) {
	return func(c *config) {
		for _, f := range fields {
			delete(c.manager, f)
		}
	}
}

// parts are those of the edge's configuration that may cost something.
var parts = []part{
	{"nothing: the edge's configuration without its filters", func(*config) {}},
	{"request id", func(c *config) {
		delete(c.manager, "always_set_request_id_in_response")
		c.manager["generate_request_id"] = false
	}},
	{"early removal of forged headers", without("early_header_mutation_extensions")},
	{"path rules", without("normalize_path", "merge_slashes", "path_with_escaped_slashes_action")},
	{"timeouts of requests and streams", func(c *config) {
		without("request_headers_timeout", "request_timeout", "drain_timeout", "delayed_close_timeout")(c)
		c.manager["stream_idle_timeout"] = "0s"
	}},
	{"limits of headers", without("common_http_protocol_options", "max_request_headers_kb")},
	{"client's address", without("use_remote_address", "xff_num_trusted_hops", "internal_address_config")},
	{"access log of failures", without("access_log")},
	{"local replies", without("local_reply_config")},
	{"retries", func(c *config) { eachRoute(c.route, func(action object) { delete(action, "retry_policy") }) }},
	{"route's timeout", func(c *config) { eachRoute(c.route, func(action object) { action["timeout"] = "0s" }) }},
	{"route tree", func(c *config) {
		host := c.route["virtual_hosts"].([]any)[0].(object)
		delete(host, "matcher")
		host["routes"] = []any{object{"name": "bench", "match": object{"prefix": "/"}, "route": object{"cluster": "bench"}}}
	}},
	{"outlier detection, least request, breakers", func(c *config) {
		for _, f := range []string{"outlier_detection", "lb_policy", "circuit_breakers"} {
			delete(c.cluster, f)
		}
	}},
	{"statistics left out", func(c *config) { c.stats = nil }},
}

// eachRoute calls f for the action of every route in a tree of them.
func eachRoute(v any, f func(action object)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRoute(e, f)
		}
	case object:
		if action, ok := v["route"].(object); ok {
			f(action)
		}
		for _, e := range v {
			eachRoute(e, f)
		}
	}
}

// partSubjects starts an Envoy for each part, with the edge's configuration but
// for its filters and that part.
func (b *bed) partSubjects() ([]*subject, error) {
	addrs, err := load.FreeAddrs(len(parts))
	if err != nil {
		return nil, err
	}
	var list []*subject
	for i, p := range parts {
		c, err := b.ownConfig()
		if err != nil {
			return nil, err
		}
		p.drop(&c)
		text, err := json.Marshal(c.static(addrs[i], b.upstream))
		if err != nil {
			return nil, err
		}
		pid, err := b.envoy("part-"+strconv.Itoa(i), string(text))
		if err != nil {
			return nil, err
		}
		s := &subject{name: p.name, pid: pid, request: load.Request{Addr: addrs[i], Path: b.edge.request.Path, Headers: b.edge.request.Headers}}
		if err := errors.Join(waitFor(s.request), pin(pid, 0)); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// ownConfig reads the configuration that the edge runs on.
func (b *bed) ownConfig() (config, error) {
	var c config
	var dump struct{ Configs []object }
	res, err := http.Get("http://" + b.Env["SLUICE_ENVOY_ADMIN_ADDR"] + "/config_dump")
	if err != nil {
		return c, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &dump); err != nil {
		return c, err
	}
	for _, section := range dump.Configs {
		for _, e := range entries(section, "dynamic_listeners") {
			if e["name"] == "gateway" {
				l := e["active_state"].(object)["listener"].(object)
				c.manager = l["filter_chains"].([]any)[0].(object)["filters"].([]any)[0].(object)["typed_config"].(object)
			}
		}
		for _, e := range entries(section, "dynamic_route_configs") {
			if r := e["route_config"].(object); r["name"] == "gateway" {
				c.route = r
			}
		}
		for _, e := range entries(section, "dynamic_active_clusters") {
			if cl := e["cluster"].(object); cl["name"] == "bench" {
				c.cluster = cl
			}
		}
		if boot, ok := section["bootstrap"].(object); ok {
			c.stats, _ = boot["stats_config"].(object)
		}
	}
	if c.manager == nil || c.route == nil || c.cluster == nil {
		return c, errors.New("the edge's configuration lacks its listener, routes or cluster")
	}
	return c, nil
}

func entries(section object, name string) (list []object) {
	all, _ := section[name].([]any)
	for _, e := range all {
		list = append(list, e.(object))
	}
	return list
}

// static is the configuration of an Envoy of its own at addr.
func (c *config) static(addr, upstream string) object {
	manager, cluster, route := maps.Clone(c.manager), maps.Clone(c.cluster), maps.Clone(c.route)
	delete(manager, "rds")
	delete(route, "@type")
	manager["route_config"] = route
	filters := manager["http_filters"].([]any)
	manager["http_filters"] = filters[len(filters)-1:]
	delete(cluster, "eds_cluster_config")
	delete(cluster, "@type")
	cluster["type"] = "STATIC"
	cluster["load_assignment"] = object{"cluster_name": "bench", "endpoints": []any{object{"lb_endpoints": []any{
		object{"endpoint": object{"address": address(upstream)}}}}}}
	out := object{"static_resources": object{
		"listeners": []any{object{"address": address(addr), "filter_chains": []any{object{"filters": []any{
			object{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}}}},
		"clusters": []any{cluster},
	}}
	if c.stats != nil {
		out["stats_config"] = c.stats
	}
	return out
}

func address(addr string) object {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return object{"socket_address": object{"address": host, "port_value": n}}
}

// explain says where the difference between a plain Envoy and the edge goes.
func (b *bed) explain(rounds int) error {
	list, err := b.partSubjects()
	if err != nil {
		return err
	}
	all := append([]*subject{b.plain, b.edge}, list...)
	for range rounds {
		for _, s := range all {
			if err := s.measureCPU(); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	whole := median(list[0].cpu)
	fmt.Printf("\n| where each microsecond goes | CPU µs a request |\n|---|---|\n| plain Envoy | %.1f |\n| the edge's configuration of Envoy, no filter | %+.1f |\n",
		median(b.plain.cpu), whole-median(b.plain.cpu))
	for _, s := range list[1:] {
		fmt.Printf("| – of it: %s | %+.1f |\n", s.name, whole-median(s.cpu))
	}
	fmt.Printf("| the filter, and the discovery of its neighbours | %+.1f |\n| the edge | %.1f |\n", median(b.edge.cpu)-whole, median(b.edge.cpu))
	return nil
}
