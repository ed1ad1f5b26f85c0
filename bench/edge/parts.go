package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/bench/testbed"
)

// part is something of the edge that can be left out to see what it costs.
type part struct {
	name string
	drop func(c *testbed.Config)
}

// without returns a drop that removes fields of the connection manager.
func without(fields ...string) func(*testbed.Config) {
	return func(c *testbed.Config) {
		for _, f := range fields {
			delete(c.Manager, f)
		}
	}
}

// bare returns a drop that removes fields of the bootstrap.
func bare(fields ...string) func(*testbed.Config) {
	return func(c *testbed.Config) {
		for _, f := range fields {
			delete(c.Boot, f)
		}
	}
}

// filterParts are taken from the whole edge.
var filterParts = []part{
	{"the edge, its configuration in a file", func(*testbed.Config) {}},
	{"the filter", func(c *testbed.Config) { c.LeaveOut("sluice.edge") }},
	{"filters that are off for the route", func(c *testbed.Config) {
		c.LeaveOut("sluice.cors", "sluice.preflight", "sluice.validate", "sluice.chatcaps")
	}},
	{"all filters, and the feed", func(c *testbed.Config) {
		c.LeaveOut("sluice.")
		delete(c.Boot, "bootstrap_extensions")
	}},
}

// parts are those of the edge's configuration that may cost something.
var parts = []part{
	{"nothing: the edge's configuration without its filters", func(*testbed.Config) {}},
	{"overload manager", bare("overload_manager")},
	{"runtime layers", bare("layered_runtime")},
	{"request id", func(c *testbed.Config) {
		delete(c.Manager, "always_set_request_id_in_response")
		c.Manager["generate_request_id"] = false
	}},
	{"early removal of forged headers", without("early_header_mutation_extensions")},
	{"path rules", without("normalize_path", "merge_slashes", "path_with_escaped_slashes_action")},
	{"timeouts of requests and streams", func(c *testbed.Config) {
		without("request_headers_timeout", "request_timeout", "drain_timeout", "delayed_close_timeout")(c)
		c.Manager["stream_idle_timeout"] = "0s"
	}},
	{"timeouts, of them: of a request's headers", without("request_headers_timeout")},
	{"timeouts, of them: of a whole request", without("request_timeout")},
	{"timeouts, of them: of an idle stream", func(c *testbed.Config) { c.Manager["stream_idle_timeout"] = "0s" }},
	{"limits of headers", without("common_http_protocol_options", "max_request_headers_kb")},
	{"client's address", without("use_remote_address", "xff_num_trusted_hops", "internal_address_config")},
	{"lines of requests, of which all are written here", without("access_log")},
	{"lines of requests, as if none were recorded", func(c *testbed.Config) { eachSample(c.Manager["access_log"], 0) }},
	{"local replies", without("local_reply_config")},
	{"headers that routes add and remove", func(c *testbed.Config) {
		delete(c.Route, "response_headers_to_add")
		delete(c.Route, "request_headers_to_add")
		eachRoute(c.Route, func(r testbed.Object) { delete(r, "request_headers_to_remove") })
	}},
	{"retries", func(c *testbed.Config) {
		delete(c.Route["virtual_hosts"].([]any)[0].(testbed.Object), "retry_policy") // which most routes have theirs from
		eachRoute(c.Route, func(r testbed.Object) { delete(r["route"].(testbed.Object), "retry_policy") })
	}},
	{"route's timeouts", func(c *testbed.Config) {
		eachRoute(c.Route, func(r testbed.Object) {
			r["route"].(testbed.Object)["timeout"], r["route"].(testbed.Object)["idle_timeout"] = "0s", "0s"
		})
	}},
	{"one value of a header", func(c *testbed.Config) {
		host := c.Route["virtual_hosts"].([]any)[0].(testbed.Object)
		delete(host["matcher"].(testbed.Object), "matcher_list")
	}},
	{"route tree", func(c *testbed.Config) {
		host := c.Route["virtual_hosts"].([]any)[0].(testbed.Object)
		delete(host, "matcher")
		host["routes"] = []any{testbed.Object{"name": "bench", "match": testbed.Object{"prefix": "/"}, "route": testbed.Object{"cluster": "bench"}}}
	}},
	{"outlier detection, least request, breakers", func(c *testbed.Config) {
		for _, f := range []string{"outlier_detection", "lb_policy", "circuit_breakers"} {
			delete(c.Cluster, f)
		}
	}},
	{"statistics left out", bare("stats_config")},
}

// eachRoute calls f for every route in a tree of them that leads to a product.
func eachRoute(v any, f func(route testbed.Object)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			eachRoute(e, f)
		}
	case testbed.Object:
		if _, ok := v["route"].(testbed.Object); ok {
			f(v)
			return
		}
		for _, e := range v {
			eachRoute(e, f)
		}
	}
}

// static starts an Envoy with the edge's own configuration but for a part of it and,
// when bare, for its filters; dir holds its filters.
func static(b *testbed.Bed, p part, bare bool, dir string) (*testbed.Subject, error) {
	c, err := b.Config()
	if err != nil {
		return nil, err
	}
	if bare {
		filterParts[len(filterParts)-1].drop(c)
	}
	p.drop(c)
	s, err := b.Static(p.name, c, dir)
	if err != nil {
		return nil, err
	}
	return s, s.Ready()
}

// explain says where the difference between a plain Envoy and the edge goes.
func explain(b *testbed.Bed) error {
	var list []*testbed.Subject
	for i, p := range slices.Concat(filterParts, parts) {
		s, err := static(b, p, i >= len(filterParts), testbed.Programs())
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	if err := testbed.Alternate(*rounds, *conns, *turn, append([]*testbed.Subject{b.Plain, b.Edge}, list...)); err != nil {
		return err
	}
	fmt.Printf("\n| where each microsecond goes | CPU µs a request |\n|---|---|\n| plain Envoy | %.1f |\n| the edge | %.1f |\n", load.Median(b.Plain.CPU), load.Median(b.Edge.CPU))
	for i, s := range list {
		from := list[0]
		if i >= len(filterParts) {
			from = list[len(filterParts)]
		}
		if s == from {
			fmt.Printf("| %s | %.1f |\n", s.Name, load.Median(s.CPU))
		} else {
			fmt.Printf("| – of it: %s | %+.1f |\n", s.Name, load.Median(testbed.Less(from.CPU, s.CPU)))
		}
	}
	return nil
}

// compare measures the edge with other builds of its filters: dirs are folders
// with the programs, separated by commas.
func compare(b *testbed.Bed, dirs string) error {
	list := []*testbed.Subject{b.Plain}
	for _, dir := range append([]string{testbed.Programs()}, strings.Split(dirs, ",")...) {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		s, err := static(b, part{dir, func(*testbed.Config) {}}, false, dir)
		if err != nil {
			return err
		}
		list = append(list, s)
	}
	if err := testbed.Alternate(*rounds, *conns, *turn, list); err != nil {
		return err
	}
	fmt.Printf("\n| filters | CPU µs a request | against this checkout's |\n|---|---|---|\n")
	for _, s := range list {
		fmt.Printf("| %s | %.1f | %+.1f |\n", s.Name, load.Median(s.CPU), load.Median(testbed.Less(s.CPU, list[1].CPU)))
	}
	return nil
}

// eachSample sets of how many requests out of a million lines are written.
func eachSample(v any, numerator int) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			eachSample(one, numerator)
		}
	case testbed.Object:
		if sample, ok := v["percent_sampled"].(testbed.Object); ok {
			sample["numerator"] = numerator
		}
		for _, one := range v {
			eachSample(one, numerator)
		}
	}
}
