package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/bench/load"
)

// part is something of the edge that can be left out to see what it costs.
type part struct {
	name string
	drop func(c *config)
}

// without returns a drop that removes fields of the connection manager.
func without(fields ...string) func(*config) {
	return func(c *config) {
		for _, f := range fields {
			delete(c.manager, f)
		}
	}
}

// bare returns a drop that removes fields of the bootstrap.
func bare(fields ...string) func(*config) {
	return func(c *config) {
		for _, f := range fields {
			delete(c.boot, f)
		}
	}
}

// filterParts are taken from the whole edge.
var filterParts = []part{
	{"the edge, its configuration in a file", func(*config) {}},
	{"the filter", func(c *config) { c.leaveOut("sluice.edge") }},
	{"filters that are off for the route", func(c *config) { c.leaveOut("sluice.cors", "sluice.preflight", "sluice.chatcaps") }},
	{"all filters, and the feed", func(c *config) {
		c.leaveOut("sluice.")
		delete(c.boot, "bootstrap_extensions")
	}},
}

// parts are those of the edge's configuration that may cost something.
var parts = []part{
	{"nothing: the edge's configuration without its filters", func(*config) {}},
	{"overload manager", bare("overload_manager")},
	{"runtime layers", bare("layered_runtime")},
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
	{"headers that routes add and remove", func(c *config) {
		delete(c.route, "response_headers_to_add")
		delete(c.route, "request_headers_to_add")
		eachRoute(c.route, func(r object) { delete(r, "request_headers_to_remove") })
	}},
	{"retries", func(c *config) { eachRoute(c.route, func(r object) { delete(r["route"].(object), "retry_policy") }) }},
	{"route's timeouts", func(c *config) {
		eachRoute(c.route, func(r object) { r["route"].(object)["timeout"], r["route"].(object)["idle_timeout"] = "0s", "0s" })
	}},
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
	{"statistics left out", bare("stats_config")},
}

// eachRoute calls f for every route in a tree of them that leads to a product.
func eachRoute(v any, f func(route object)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRoute(e, f)
		}
	case object:
		if _, ok := v["route"].(object); ok {
			f(v)
			return
		}
		for _, e := range v {
			eachRoute(e, f)
		}
	}
}

// without starts an Envoy with the edge's own configuration but for a part of it
// and, when bare, for its filters; dir holds its filters.
func (b *bed) without(p part, bare bool, dir string) (*subject, error) {
	c, err := b.ownConfig()
	if err != nil {
		return nil, err
	}
	if bare {
		filterParts[len(filterParts)-1].drop(c)
	}
	p.drop(c)
	addrs, err := load.FreeAddrs(1)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(c.static(addrs[0], b.upstream, dir))
	if err != nil {
		return nil, err
	}
	pid, err := b.envoy("part-"+strconv.Itoa(len(b.started)), string(text))
	if err != nil {
		return nil, err
	}
	s := &subject{name: p.name, pid: pid, request: load.Request{Addr: addrs[0], Path: b.edge.request.Path, Headers: b.edge.request.Headers}}
	if err := errors.Join(waitFor(s.request), pin(pid, 0)); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return s, nil
}

// explain says where the difference between a plain Envoy and the edge goes.
func (b *bed) explain(rounds int) error {
	var whole, bare []*subject
	for i, p := range slices.Concat(filterParts, parts) {
		s, err := b.without(p, i >= len(filterParts), b.wasm())
		if err != nil {
			return err
		}
		if i < len(filterParts) {
			whole = append(whole, s)
		} else {
			bare = append(bare, s)
		}
	}
	if err := alternate(rounds, slices.Concat([]*subject{b.plain, b.edge}, whole, bare)); err != nil {
		return err
	}
	fmt.Printf("\n| where each microsecond goes | CPU µs a request |\n|---|---|\n| plain Envoy | %.1f |\n| the edge | %.1f |\n", median(b.plain.cpu), median(b.edge.cpu))
	for i, s := range append(whole, bare...) {
		from := whole[0]
		if i >= len(whole) {
			from = bare[0]
		}
		if s == from {
			fmt.Printf("| %s | %.1f |\n", s.name, median(s.cpu))
		} else {
			fmt.Printf("| – of it: %s | %+.1f |\n", s.name, median(less(from.cpu, s.cpu)))
		}
	}
	return nil
}

// compare measures the edge with other builds of its filters: dirs are folders
// with the programs, separated by commas.
func (b *bed) compare(rounds int, dirs string) error {
	var list []*subject
	for _, dir := range append([]string{b.wasm()}, strings.Split(dirs, ",")...) {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		s, err := b.without(part{dir, func(*config) {}}, false, dir)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	if err := alternate(rounds, append([]*subject{b.plain}, list...)); err != nil {
		return err
	}
	fmt.Printf("\n| filters | CPU µs a request | against the first |\n|---|---|---|\n| plain Envoy | %.1f | %+.1f |\n", median(b.plain.cpu), median(less(b.plain.cpu, list[0].cpu)))
	for _, s := range list {
		fmt.Printf("| %s | %.1f | %+.1f |\n", s.name, median(s.cpu), median(less(s.cpu, list[0].cpu)))
	}
	return nil
}

// alternate measures the CPU time of each of the list, turn by turn.
func alternate(rounds int, list []*subject) error {
	for round := range rounds {
		for i := range list {
			s := list[(i+round)%len(list)]
			if err := s.measureCPU(*turn); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// less gives a-b of each round.
func less(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
