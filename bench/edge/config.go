package main

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object of Envoy's configuration.
type object = map[string]any

// config is what an Envoy is made of that does as the edge does, from a file.
type config struct {
	manager, route, cluster, boot object
	found                         map[string]object // filters that the edge discovers, by name
}

// ownConfig reads the configuration that the edge runs on.
func (b *bed) ownConfig() (*config, error) {
	var dump struct{ Configs []object }
	res, err := http.Get("http://" + b.Env["SLUICE_ENVOY_ADMIN_ADDR"] + "/config_dump")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&dump); err != nil {
		return nil, err
	}
	c := &config{found: map[string]object{}}
	for _, section := range dump.Configs {
		c.read(section)
	}
	if c.manager == nil || c.route == nil || c.cluster == nil || c.boot == nil {
		return nil, errors.New("the edge's configuration lacks its listener, routes, cluster or bootstrap")
	}
	return c, nil
}

// read takes what it wants of a section of the dump.
func (c *config) read(section object) {
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
	for _, e := range entries(section, "ecds_filters") {
		f := e["ecds_filter"].(object)
		c.found[f["name"].(string)] = f["typed_config"].(object)
	}
	if boot, ok := section["bootstrap"].(object); ok {
		c.boot = boot
	}
}

func entries(section object, name string) (list []object) {
	all, _ := section[name].([]any)
	for _, e := range all {
		list = append(list, e.(object))
	}
	return list
}

// leaveOut removes filters whose names begin so.
func (c *config) leaveOut(names ...string) {
	kept := slices.DeleteFunc(slices.Clone(c.manager["http_filters"].([]any)), func(f any) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(f.(object)["name"].(string), name) })
	})
	c.manager["http_filters"] = kept
}

// static is the configuration of an Envoy of its own at addr, which proxies to
// upstream alone and has its filters' programs in dir.
func (c *config) static(addr, upstream, dir string) object {
	manager, cluster, boot := maps.Clone(c.manager), maps.Clone(c.cluster), maps.Clone(c.boot)
	delete(manager, "rds")
	delete(c.route, "@type")
	manager["route_config"] = c.route
	for _, f := range manager["http_filters"].([]any) {
		f := f.(object)
		if found := c.found[f["name"].(string)]; found != nil {
			delete(f, "config_discovery")
			f["typed_config"] = found
		}
	}
	delete(cluster, "eds_cluster_config")
	delete(cluster, "@type")
	cluster["type"] = "STATIC"
	cluster["load_assignment"] = object{"cluster_name": "bench", "endpoints": []any{object{"lb_endpoints": []any{
		object{"endpoint": object{"address": address(upstream)}}}}}}
	for _, f := range []string{"dynamic_resources", "admin", "node"} {
		delete(boot, f)
	}
	clusters := append(slices.Clone(boot["static_resources"].(object)["clusters"].([]any)), cluster)
	boot["static_resources"] = object{
		"listeners": []any{object{"address": address(addr), "filter_chains": []any{object{"filters": []any{
			object{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}}}},
		"clusters": clusters,
	}
	withPrograms(boot, dir)
	return boot
}

// withPrograms has the programs in v come from dir.
func withPrograms(v any, dir string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			withPrograms(e, dir)
		}
	case object:
		if file, ok := v["filename"].(string); ok {
			v["filename"] = filepath.Join(dir, filepath.Base(file))
		}
		for _, e := range v {
			withPrograms(e, dir)
		}
	}
}

func address(addr string) object {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return object{"socket_address": object{"address": host, "port_value": n}}
}
